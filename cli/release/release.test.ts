import { expect } from 'chai';
import type { Client } from '../../kube/client.js';
import { ADDRESS_LEASES, IPAM_CLAIMS, PODS, VIRTUAL_MACHINE_INSTANCES } from '../../kube/resources.js';
import { claimOf } from '../../test/objects/pool-objects.js';
import {
  NAME,
  NOW,
  clusterWith,
  lease,
  podWith,
  refusal,
  releasedAt,
  run,
  vmiWith,
} from './testing/release-cluster.js';

describe('kubectl holdfast release', () => {
  it('releases an address whose owner is gone, so that it cools down, by the clock of the API server', async () => {
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

  it('refuses reservations, and names the command for them', async () => {
    const { owner: _owner, ...spec } = lease().spec;
    expect(await refusal(clusterWith({ ...lease(), spec }))).to.include('run kubectl holdfast unreserve blue 10.0.0.5');
  });

  it('refuses quarantined addresses, and names the command for them', async () => {
    const cluster = clusterWith(lease('10.0.0.5', { takenBy: '02:00:00:00:00:99' }));
    expect(await refusal(cluster)).to.include(
      `is quarantined and has no owner: to free the address, run kubectl delete alease ${NAME}`,
    );
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

  it('says which address of a claim is released if somebody starts to use the other one meanwhile', async () => {
    const cluster = clusterWith(lease(), lease('10.0.0.6'));
    cluster.beforeWrite = ({ name }) => {
      if (cluster.writes === 1) cluster.change(ADDRESS_LEASES, name, (object) => structuredClone(object));
    };
    const error: unknown = await run(cluster, { subject: 'c1' }).catch((thrown: unknown) => thrown);
    expect(String(error)).to.match(/AddressLease blue\.10-0-0-6 has changed/);
    expect(cluster.printed).to.deep.equal([`addresslease.ipam.holdfast.dev/${NAME} released: the address cools down`]);
  });

  it('reads the lease before it reads who uses it', async () => {
    const cluster = clusterWith();
    await run(cluster);
    const leaseRead = cluster.reads.indexOf(`addressleases/${NAME}`);
    for (const read of ['ipamclaims/c1', 'pods?', 'virtualmachineinstances?', 'ipamclaims?'])
      expect(cluster.reads.indexOf(read), read).to.be.greaterThan(leaseRead);
  });

  it('keeps no pod, VMI or claim that does not use the address: a cluster may have a hundred thousand', async () => {
    const cluster = clusterWith()
      .put(PODS, podWith(['10.0.0.6']))
      .put(VIRTUAL_MACHINE_INSTANCES, vmiWith({ ipAddresses: ['10.0.0.6'] }))
      .put(IPAM_CLAIMS, claimOf('a/another'));
    const kept = new Map<string, string>();
    const { client } = cluster;
    const listAs = client.listAs.bind(client);
    client.listAs = (async (...args: Parameters<Client['listAs']>) => {
      const list = await listAs(...args);
      kept.set(args[0].plural, JSON.stringify(list.items));
      return list;
    }) as Client['listAs'];
    await run(cluster);
    for (const { plural } of [PODS, VIRTUAL_MACHINE_INSTANCES, IPAM_CLAIMS])
      expect(kept.get(plural), plural).to.be.a('string').that.does.not.include('metadata');
  });

  it('fails if the user may not see who uses the address', async () => {
    for (const plural of ['pods', 'virtualmachineinstances', 'ipamclaims']) {
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

  it('accepts an address with its prefix length, as kubectl holdfast ips prints it', async () => {
    expect(await run(clusterWith(), { subject: '10.0.0.5/24' })).to.have.length(1);
  });

  it('says that an address is leased in another pool than that of --pool', async () => {
    expect(await refusal(clusterWith(), { pool: 'bleu' })).to.equal(
      '10.0.0.5 is leased in blue, not in pool bleu: correct --pool, or leave it out',
    );
  });

  for (const [subject, message] of [
    ['10.0.0.9', '10.0.0.9 is not leased: there is nothing to release'],
    ['10.0.0.005', '"10.0.0.005" is not an IP address'],
    ['10.0.0.5/240', '"10.0.0.5/240" has no valid prefix length'],
    ['::ffff:10.0.0.5/120', '"::ffff:10.0.0.5" is an IPv4 address in the form of IPv6: write 10.0.0.5'],
    ['fd00::x', '"fd00::x" is not an IP address'],
    ['nobody', 'IPAMClaim a/nobody has no leases'],
  ] as const)
    it(`has nothing to release for ${subject}`, async () => {
      expect(await refusal(clusterWith(), { subject })).to.include(message);
    });
});
