import { expect } from 'chai';
import type { AddressLease } from '../../api/address-lease.js';
import type { Pod } from '../../api/pod.js';
import { leaseLabels } from '../../ipam/core/lease-labels.js';
import {
  ADDRESS_LEASES,
  ADDRESS_POOLS,
  IPAM_CLAIMS,
  NETWORK_ATTACHMENT_DEFINITIONS,
  PODS,
} from '../../kube/resources.js';
import { leaseOf, type LeaseOptions } from '../../test/lease-objects.js';
import { adminPool, claimOf, holdfastConfig, nadDefinition } from '../../test/pool-objects.js';
import { CommandError } from '../command-error.js';
import { MemoryCluster } from '../testing/memory-cluster.js';
import { type ReleaseOptions, release } from './release.js';

const NOW = Date.parse('2026-01-02T00:00:00Z');
const NAME = 'blue.10-0-0-5';

/** The lease of claim `a/c1` that is gone. */
function lease(address = '10.0.0.5', options: LeaseOptions = {}): AddressLease {
  const made = leaseOf(address, 7, options);
  return { ...made, metadata: { ...made.metadata, labels: leaseLabels(made.spec) } };
}

function podWith(ips: string[], nad = 'a/blue', phase = 'Running'): Pod {
  const annotations = { 'k8s.v1.cni.cncf.io/network-status': JSON.stringify([{ name: nad, interface: 'net1', ips }]) };
  return { metadata: { namespace: 'a', name: 'user', uid: 'user-uid', annotations }, status: { phase } };
}

function clusterWith(...leases: AddressLease[]): MemoryCluster {
  return new MemoryCluster()
    .put(ADDRESS_POOLS, adminPool('blue'), adminPool('red', { network: 'red' }))
    .put(NETWORK_ATTACHMENT_DEFINITIONS, nadDefinition('a/blue', holdfastConfig()))
    .put(NETWORK_ATTACHMENT_DEFINITIONS, nadDefinition('a/red', holdfastConfig({}, 'red')))
    .put(ADDRESS_LEASES, ...(leases.length === 0 ? [lease()] : leases));
}

function run(cluster: MemoryCluster, options: Partial<ReleaseOptions> = {}): Promise<string[]> {
  const all = { subject: '10.0.0.5', namespace: 'a', dryRun: false, ...options };
  return release(all, { client: cluster.client, clock: { wall: () => NOW } });
}

async function refusal(cluster: MemoryCluster, options: Partial<ReleaseOptions> = {}): Promise<string> {
  const error: unknown = await run(cluster, options).catch((thrown: unknown) => thrown);
  expect(error).to.be.instanceOf(CommandError);
  expect(cluster.find(ADDRESS_LEASES, NAME)?.spec.releasedAt).to.equal(undefined);
  return (error as CommandError).message;
}

const releasedAt = (cluster: MemoryCluster, name = NAME) => cluster.find(ADDRESS_LEASES, name)?.spec.releasedAt;

describe('kubectl holdfast release', () => {
  it('releases an address whose owner is gone, so that it cools down', async () => {
    const cluster = clusterWith();
    expect(await run(cluster)).to.deep.equal([
      `addresslease.ipam.holdfast.dev/${NAME} released: the address cools down`,
    ]);
    expect(releasedAt(cluster)).to.equal('2026-01-02T00:00:00.000Z');
  });

  it('releases all addresses of a claim that is gone', async () => {
    const cluster = clusterWith(lease(), lease('10.0.0.6'), lease('10.0.0.7', { name: 'other' }));
    expect(await run(cluster, { subject: 'c1' })).to.have.length(2);
    expect(['5', '6', '7'].map((last) => releasedAt(cluster, `blue.10-0-0-${last}`) !== undefined)).to.deep.equal([
      ...[true, true, false],
    ]);
    expect(await run(clusterWith(), { subject: 'a/c1', namespace: 'elsewhere' })).to.have.length(1);
  });

  it('writes nothing in a dry run', async () => {
    const cluster = clusterWith();
    expect((await run(cluster, { dryRun: true }))[0]).to.include('can be released (dry run: nothing was written)');
    expect(releasedAt(cluster)).to.equal(undefined);
  });

  for (const [why, prepare, message] of [
    [
      'its claim exists',
      (cluster) =>
        cluster.put(IPAM_CLAIMS, { ...claimOf('a/c1'), metadata: { namespace: 'a', name: 'c1', uid: 'c1-uid' } }),
      'IPAMClaim a/c1 still exists: delete it, or the VM to which it belongs',
    ],
    [
      'a pod reports the address',
      (cluster) => cluster.put(PODS, podWith(['10.0.0.5'])),
      'pod a/user reports the address: delete the pod, or stop its VM',
    ],
    [
      'a pod reports the address on a NAD that does not exist',
      (cluster) => cluster.put(PODS, podWith(['10.0.0.5'], 'a/gone')),
      'pod a/user reports the address',
    ],
    [
      'a pod reports an address that cannot be read',
      (cluster) => cluster.put(PODS, podWith(['10.0.0.500'])),
      'pod a/user reports an address that cannot be read ("10.0.0.500"): delete the pod, or stop its VM',
    ],
    [
      'a claim has a text in its status that cannot be read, of which the message shows the beginning',
      (cluster) => cluster.put(IPAM_CLAIMS, { ...claimOf('b/restored'), status: { ips: ['x'.repeat(5_000)] } }),
      `IPAMClaim b/restored has an address that cannot be read ("${'x'.repeat(80)}") in its status: correct or clear it, or delete`,
    ],
    [
      'another claim has the address in its status',
      (cluster) => cluster.put(IPAM_CLAIMS, { ...claimOf('b/restored'), status: { ips: ['10.0.0.5/24'] } }),
      'IPAMClaim b/restored has the address in its status and gets it back: delete its VM first',
    ],
  ] as readonly [string, (cluster: MemoryCluster) => MemoryCluster, string][])
    it(`refuses if ${why}`, async () => {
      expect(await refusal(prepare(clusterWith())))
        .to.include('nothing was released:')
        .and.include(message);
    });

  it('refuses for a user who may not list NADs if a pod reports the address on any network', async () => {
    const cluster = clusterWith().put(PODS, podWith(['10.0.0.5'], 'a/red'));
    cluster.refused.add('network-attachment-definitions');
    expect(await refusal(cluster)).to.include('pod a/user reports the address');
  });

  for (const [who, prepare] of [
    ['a claim of the same name', (cluster) => cluster.put(IPAM_CLAIMS, claimOf('a/c1'))],
    ['a pod with the address in another address space', (cluster) => cluster.put(PODS, podWith(['10.0.0.5'], 'a/red'))],
    ['a pod that has ended', (cluster) => cluster.put(PODS, podWith(['10.0.0.5'], 'a/blue', 'Succeeded'))],
    [
      'a claim with the address in another address space',
      (cluster) => cluster.put(IPAM_CLAIMS, { ...claimOf('a/x', undefined, 'red'), status: { ips: ['10.0.0.5/24'] } }),
    ],
  ] as readonly [string, (cluster: MemoryCluster) => MemoryCluster][])
    it(`is not prevented by ${who}`, async () => {
      const cluster = prepare(clusterWith());
      await run(cluster);
      expect(releasedAt(cluster)).not.to.equal(undefined);
    });

  it('refuses if a pod reports the address of a network whose pools are gone', async () => {
    const cluster = clusterWith().put(PODS, podWith(['10.0.0.5']));
    cluster.change(ADDRESS_POOLS, 'blue', (pool) => ({ ...pool, spec: { ...pool.spec, network: 'green' } }));
    expect(await refusal(cluster, { subject: 'a/c1' })).to.include('pod a/user reports the address');
  });

  it('refuses reservations, and names the command for them', async () => {
    const { owner: _owner, ...spec } = lease().spec;
    expect(await refusal(clusterWith({ ...lease(), spec }))).to.include('run kubectl holdfast unreserve blue 10.0.0.5');
  });

  it('does not begin the cool-down of a released address again', async () => {
    const cluster = clusterWith(lease('10.0.0.5', { releasedAt: NOW - 1_000 }));
    const error: unknown = await run(cluster).catch((thrown: unknown) => thrown);
    expect(String(error)).to.include(`AddressLease ${NAME} is released already: the address cools down`);
    expect(releasedAt(cluster)).to.equal(new Date(NOW - 1_000).toISOString());
  });

  it('fails without a write if somebody starts to use the address between the check and the write', async () => {
    const cluster = clusterWith();
    cluster.beforeWrite = () => {
      cluster.change(ADDRESS_LEASES, NAME, (object) => ({
        ...object,
        spec: { ...object.spec, owner: { kind: 'IPAMClaim' as const, namespace: 'b', name: 'next', uid: 'next-uid' } },
      }));
    };
    expect(await refusal(cluster)).to.include(`AddressLease ${NAME} has changed since it was checked`);
    expect(cluster.find(ADDRESS_LEASES, NAME)?.spec.owner?.name).to.equal('next');
  });

  it('fails without a write if the lease was replaced between the check and the write', async () => {
    const cluster = clusterWith();
    cluster.beforeWrite = () => {
      cluster.change(ADDRESS_LEASES, NAME, (object) => ({ ...object, metadata: { ...object.metadata, uid: 'new' } }));
    };
    expect(await refusal(cluster)).to.include('has changed since it was checked');
  });

  it('reads the lease before it reads who uses it', async () => {
    const cluster = clusterWith();
    await run(cluster);
    const leaseRead = cluster.reads.indexOf(`addressleases/${NAME}`);
    for (const read of ['ipamclaims/c1', 'pods?', 'ipamclaims?'])
      expect(cluster.reads.indexOf(read), read).to.be.greaterThan(leaseRead);
  });

  it('fails if the user may not see who uses the address', async () => {
    for (const plural of ['pods', 'ipamclaims']) {
      const cluster = clusterWith();
      cluster.refused.add(plural);
      const error: unknown = await run(cluster).catch((thrown: unknown) => thrown);
      expect(String(error)).to.include('403');
      expect(releasedAt(cluster)).to.equal(undefined);
    }
  });

  it('asks for the pool of an address that several pools lease', async () => {
    const other = lease();
    const red = { ...other, metadata: { ...other.metadata, name: 'red.10-0-0-5' } };
    const cluster = clusterWith(lease(), { ...red, spec: { ...red.spec, pool: 'red', addressSpace: 'red' } });
    expect(await refusal(cluster)).to.include('is leased in several pools (blue, red): choose one with --pool');
    expect(await run(cluster, { pool: 'red' })).to.deep.equal([
      'addresslease.ipam.holdfast.dev/red.10-0-0-5 released: the address cools down',
    ]);
  });

  for (const [subject, message] of [
    ['10.0.0.9', '10.0.0.9 is not leased: there is nothing to release'],
    ['nobody', 'IPAMClaim a/nobody has no leases'],
  ] as const)
    it(`has nothing to release for ${subject}`, async () => {
      expect(await refusal(clusterWith(), { subject })).to.include(message);
    });
});
