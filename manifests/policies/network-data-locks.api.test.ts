import { expect } from 'chai';
import { spawnSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { parse } from 'yaml';
import { isForbidden, isInvalid } from '../../kube/errors.js';
import type { Client } from '../../kube/client.js';
import { ADDRESS_LEASES } from '../../kube/resources.js';
import { capture } from '../../bed/processes/processes.js';
import { fencedBlocks } from '../../test/repository/documents.js';
import { networkDataLock, newLease } from '../../test/objects/lease-objects.js';
import { type PolicyCluster, expectDenial, untilDenied, usePolicyCluster } from '../testing/policy-cluster.js';

const NAME = 'blue.10-0-0-2';
const LOCKED = 'blue.10-0-0-3';
const RELEASED = 'blue.10-0-0-5';
const ONLY_LOCKS = 'changes only spec.networkData of a lease';

/** By the CRD, which binds every user. */
async function expectInvalid(attempt: Promise<unknown>, text: string): Promise<void> {
  const error: unknown = await attempt.catch((reason: unknown) => reason);
  expect(isInvalid(error)).to.equal(true);
  expect(String(error)).to.include(text);
}

describe('the lock of addresses that a Secret may hold, on a kube-apiserver', function () {
  let admin: Client;
  /** A client with the shipped rights. */
  let guest: Client;
  let ipam: Client;
  let kubeconfig: string;

  usePolicyCluster(this, async (cluster: PolicyCluster) => {
    ({ admin, kubeconfig } = cluster);
    guest = await cluster.withToken({ namespace: 'holdfast-system', name: 'holdfast-guest' });
    ipam = await cluster.withToken({ namespace: 'holdfast-system', name: 'holdfast-ipam' });
    const pod = newLease('10.0.0.4');
    pod.spec.owner = { ...pod.spec.owner!, kind: 'Pod' };
    const released = newLease('10.0.0.5');
    released.spec.releasedAt = '2026-01-01T00:00:00Z';
    for (const each of [newLease('10.0.0.2'), newLease('10.0.0.3'), pod, released])
      await admin.create(ADDRESS_LEASES, each);
    await untilDenied(() => patch(guest, NAME, { spec: { mac: '02:00:00:00:00:0a' } }, true));
    await patch(guest, LOCKED, { spec: { networkData: networkDataLock() } });
  });

  const patch = (client: Client, name: string, body: object, dryRun = false) =>
    client.patch(ADDRESS_LEASES, { name }, { type: 'merge', body }, { dryRun });

  it('is set and removed by guest, which finds all locks by a field selector', async () => {
    expect((await patch(guest, NAME, { spec: { networkData: networkDataLock() } })).spec.networkData).to.deep.equal(
      networkDataLock(),
    );
    const find = async () => {
      const { items } = await guest.list(ADDRESS_LEASES, { fieldSelector: 'spec.networkData.secret!=' });
      return items.map(({ metadata }) => metadata.name).sort();
    };
    expect(await find()).to.deep.equal([NAME, LOCKED]);
    await patch(guest, NAME, { spec: { networkData: null } });
    expect(await find()).to.deep.equal([LOCKED]);
  });

  it('lets no other VM get the address until guest removes it, not even by the hand of an administrator', async () => {
    await admin.create(ADDRESS_LEASES, newLease('10.0.0.6'));
    const name = 'blue.10-0-0-6';
    await patch(guest, name, { spec: { networkData: networkDataLock() } });
    await patch(admin, name, { spec: { releasedAt: '2026-01-01T00:00:00Z' } });
    const other = { spec: { owner: { name: 'vm2.blue', uid: 'c-2', workloadUID: 'vm-2' }, releasedAt: null } };
    await expectInvalid(patch(admin, name, other), 'may still hold the address');
    const unlocked = { spec: { ...other.spec, networkData: null } };
    await expectInvalid(patch(admin, name, unlocked), 'may still hold the address');
    await patch(guest, name, { spec: { networkData: null } });
    await patch(admin, name, other);
  });

  it('lets no ipam of an earlier version delete the lease when its cool-down is over', async () => {
    await expectDenial(ipam.delete(ADDRESS_LEASES, { name: LOCKED }), 'may still hold 10.0.0.3');
    await admin.create(ADDRESS_LEASES, newLease('10.0.0.9'));
    await ipam.delete(ADDRESS_LEASES, { name: 'blue.10-0-0-9' });
  });

  it('lets the next claim of the same VM have the address', async () => {
    const { owner } = newLease('10.0.0.7').spec;
    const given = newLease('10.0.0.7');
    given.spec.owner = { ...owner!, workloadUID: 'vm-1' };
    await admin.create(ADDRESS_LEASES, given);
    await patch(guest, 'blue.10-0-0-7', { spec: { networkData: networkDataLock() } });
    await patch(admin, 'blue.10-0-0-7', { spec: { releasedAt: '2026-01-01T00:00:00Z' } });
    await patch(admin, 'blue.10-0-0-7', { spec: { owner: { ...given.spec.owner, uid: 'c-9' }, releasedAt: null } });
  });

  it('cannot be changed, set for a pod, or set for a Secret in another namespace than the claim’s', async () => {
    await expectInvalid(patch(guest, LOCKED, { spec: { networkData: { secret: 'x' } } }), 'cannot be changed');
    await expectInvalid(
      patch(guest, 'blue.10-0-0-4', { spec: { networkData: networkDataLock() } }),
      'held by an IPAMClaim',
    );
    const elsewhere = { spec: { networkData: networkDataLock({ namespace: 'elsewhere' }) } };
    await expectDenial(patch(guest, NAME, elsewhere), 'in the namespace of its owner');
  });

  const others: Record<string, object> = {
    'the owner of a released lease': { spec: { owner: { uid: 'c-2' }, releasedAt: null } },
    'the node': { spec: { node: 'node-9' } },
    'the container': { spec: { containerID: 'x' } },
    'the interface': { spec: { interface: 'net9' } },
    'the MAC address': { spec: { mac: '02:00:00:00:00:0a' } },
    'the release': { spec: { releasedAt: null } },
    'a label': { metadata: { labels: { 'ipam.holdfast.dev/pool': 'red' } } },
    'an annotation': { metadata: { annotations: { 'ipam.holdfast.dev/probe': 'free' } } },
    'a finalizer': { metadata: { finalizers: ['example.com/x'] } },
  };
  for (const [name, body] of Object.entries(others)) {
    it(`does not let guest change ${name}`, () => expectDenial(patch(guest, RELEASED, body, true), ONLY_LOCKS));
  }

  it('names each field of the spec in the policy, so that guest cannot change a new one', async () => {
    const read = async (file: string) => readFile(new URL(file, import.meta.url), 'utf8');
    const crd = parse(await read('../crds/addressleases.yaml')) as {
      spec: { versions: { schema: { openAPIV3Schema: { properties: { spec: { properties: object } } } } }[] };
    };
    const fields = Object.keys(crd.spec.versions[0]!.schema.openAPIV3Schema.properties.spec.properties);
    const policy = await read('../base/guest/policies/network-data-locks.yaml');
    for (const field of fields)
      if (field !== 'networkData') expect(policy).to.match(new RegExp(`object\\.spec\\.\\??${field} == oldObject`));
  });

  it('is removed from all leases by the command of the uninstall guide', async function () {
    if (spawnSync('kubectl', ['version', '--client']).error !== undefined) this.skip();
    const guide = await readFile(new URL('../../docs/how-to/uninstall.md', import.meta.url), 'utf8');
    const [command = '', ...more] = fencedBlocks(guide, 'sh').filter((block) => block.includes('networkData'));
    expect(more).to.deep.equal([]);
    await admin.create(ADDRESS_LEASES, newLease('10.0.0.10'));
    await patch(guest, 'blue.10-0-0-10', { spec: { networkData: networkDataLock() } });
    const env = { PATH: process.env.PATH ?? '', HOME: dirname(kubeconfig), KUBECONFIG: kubeconfig };
    await capture('sh', ['-ec', command], { env });
    const { items } = await admin.list(ADDRESS_LEASES);
    expect(items.filter(({ spec }) => spec.networkData !== undefined)).to.deep.equal([]);
    expect(items.map(({ metadata }) => metadata.name)).to.include.members([LOCKED, 'blue.10-0-0-10']);
  });

  it('lets guest neither create nor delete leases', async () => {
    for (const attempt of [
      () => guest.create(ADDRESS_LEASES, newLease('10.0.0.8'), { dryRun: true }),
      () => guest.delete(ADDRESS_LEASES, { name: NAME }),
    ]) {
      const error: unknown = await attempt().catch((reason: unknown) => reason);
      expect(isForbidden(error)).to.equal(true);
    }
  });
});
