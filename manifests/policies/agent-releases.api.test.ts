import { IPAM_API_VERSION } from '../../api/names.js';
import type { Client, Patch } from '../../kube/client.js';
import { ADDRESS_LEASES, NODES } from '../../kube/resources.js';
import { type PolicyCluster, expectDenial, untilDenied, usePolicyCluster } from '../testing/policy-cluster.js';
import { AGENT, ON_NODE_2, changed, lease } from '../testing/node-leases.js';

const MINUTE_MS = 60_000;
const LATE = 'more than one hour after the current time of the API server';
const UNTRACKED = 'an agent does not remove metadata.managedFields';

/** @param ahead minutes from now */
function release(ahead: number): { spec: { releasedAt: string } } {
  return { spec: { releasedAt: new Date(Date.now() + ahead * MINUTE_MS).toISOString() } };
}

/** managedFields that claim a write in the far future. */
const FORGED = {
  manager: 'forger',
  operation: 'Update',
  apiVersion: IPAM_API_VERSION,
  time: '2099-01-01T00:00:00Z',
  fieldsType: 'FieldsV1',
  fieldsV1: { 'f:spec': { 'f:releasedAt': {} } },
};

function withFields(managedFields: readonly object[], body: object = {}): object {
  return { ...body, metadata: { managedFields } };
}

describe('the admission policy for the times that agents write, on a kube-apiserver', function () {
  let cluster: PolicyCluster;
  let agent: Client;

  usePolicyCluster(this, async (started) => {
    cluster = started;
    await cluster.admin.create(NODES, { metadata: { name: 'node-1' } });
    agent = await cluster.withToken(AGENT, { node: 'node-1' });
    await untilDenied(() => agent.create(ADDRESS_LEASES, lease(ON_NODE_2), { dryRun: true }));
  });

  const patch = (body: object): Patch => ({ type: 'merge', body });
  const { apiVersion, kind, metadata, spec } = lease();
  const applied = (body: { spec: object }): Patch => ({
    type: 'apply',
    fieldManager: 'forger',
    force: true,
    object: { apiVersion, kind, metadata, spec: { ...spec, ...body.spec } },
  });

  const releases: { name: string; steps: Patch[]; expect?: string }[] = [
    { name: 'an agent may set releasedAt to the current time', steps: [patch(release(0))] },
    { name: 'an agent whose clock is slow may release a lease', steps: [patch(release(-600))] },
    { name: 'an agent whose clock is less than one hour fast may release a lease', steps: [patch(release(50))] },
    { name: 'an agent may not set releasedAt over one hour ahead', steps: [patch(release(70))], expect: LATE },
    {
      name: 'an agent may not set releasedAt to a time years ahead',
      steps: [patch({ spec: { releasedAt: '2099-01-01T00:00:00Z' } })],
      expect: LATE,
    },
    { name: 'an agent may release a lease by server-side apply', steps: [applied(release(0))] },
    { name: 'an agent may not apply a releasedAt over one hour ahead', steps: [applied(release(70))], expect: LATE },
    {
      name: 'an agent may not justify a later releasedAt with forged managedFields',
      steps: [patch(withFields([FORGED], release(70)))],
      expect: LATE,
    },
    {
      name: 'an agent may not justify a later releasedAt with managedFields that it forged before',
      steps: [patch(withFields([FORGED])), applied(release(70))],
      expect: LATE,
    },
    {
      name: 'an agent may not remove managedFields together with a release',
      steps: [patch(withFields([{}], release(70)))],
      expect: UNTRACKED,
    },
    { name: 'agents may not clear managedFields before releases', steps: [patch(withFields([{}]))], expect: UNTRACKED },
  ];
  for (const { name, steps, expect: words } of releases) {
    it(name, async () => {
      const ref = (await cluster.admin.create(ADDRESS_LEASES, lease())).metadata;
      try {
        for (const step of steps.slice(0, -1)) await agent.patch(ADDRESS_LEASES, ref, step);
        await expectDenial(agent.patch(ADDRESS_LEASES, ref, steps.at(-1)!), words);
      } finally {
        await cluster.admin.delete(ADDRESS_LEASES, ref);
      }
    });
  }

  it('an agent may set any releasedAt if an administrator has removed managedFields', async () => {
    const ref = (await cluster.admin.create(ADDRESS_LEASES, lease())).metadata;
    await cluster.admin.patch(ADDRESS_LEASES, ref, patch(withFields([{}])));
    await agent.patch(ADDRESS_LEASES, ref, patch(release(70)));
    await cluster.admin.delete(ADDRESS_LEASES, ref);
  });

  it('the API server records managedFields for a lease that an agent creates without them', async () => {
    const ref = (await agent.create(ADDRESS_LEASES, changed(lease(), { metadata: { managedFields: [{}] } }))).metadata;
    await expectDenial(agent.patch(ADDRESS_LEASES, ref, patch(release(70))), LATE);
    await cluster.admin.delete(ADDRESS_LEASES, ref);
  });
});
