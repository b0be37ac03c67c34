import { expect } from 'chai';
import type { AddressLease } from '../../api/address-lease.js';
import {
  LEASE_FAMILY,
  LEASE_MAC,
  LEASE_NODE,
  LEASE_OWNER_KIND,
  LEASE_OWNER_NAME,
  LEASE_OWNER_NAMESPACE,
  LEASE_OWNER_UID,
  LEASE_POOL,
} from '../../api/names.js';
import { parseAddress } from '../../addressing/address/address.js';
import { createLease, readLease, releaseLease, reallocateLease } from '../../addressing/lease/lease.js';
import type { Client } from '../../kube/client.js';
import { ADDRESS_LEASES, NODES } from '../../kube/resources.js';
import { writeLease } from '../../cluster/lease-writes.js';
import { type PolicyCluster, expectDenial, untilDenied, usePolicyCluster } from '../testing/policy-cluster.js';
import {
  AGENT,
  AGENT_USER,
  CLAIM,
  DB,
  ON_NODE_1,
  ON_NODE_2,
  RESERVED,
  WEB,
  changed,
  lease,
  request,
} from '../testing/node-leases.js';
import { requestErrorOf } from '../../test/request-error.js';

const RELEASED = Date.parse('2020-01-01T00:00:00Z');
const RELEASED_AT = { spec: { releasedAt: new Date(RELEASED).toISOString() } };
const NAME = 'blue.10-0-0-5';

const FOREIGN =
  'may only change leases of pods of that node, and allocate released addresses or those reserved for the MAC address of the pod';
const PODS_ONLY = 'an agent allocates addresses to pods only, and spec.owner.kind is';
const OWN_NODE = 'the agent of node node-1 allocates addresses to pods of that node only, and spec.node is';
const NO_DELETE = 'an agent does not delete leases: release it (set spec.releasedAt)';
const NO_END = 'omit metadata.finalizers and metadata.ownerReferences';
const LABELS = 'labels of a lease must match its spec, and these do not: ipam.holdfast.dev/';

describe('the admission policy for leases that agents write, on a kube-apiserver', function () {
  let cluster: PolicyCluster;
  let agent: Client;

  usePolicyCluster(this, async (started) => {
    cluster = started;
    for (const name of ['node-1']) await cluster.admin.create(NODES, { metadata: { name } });
    agent = await cluster.withToken(AGENT, { node: 'node-1' });
    await untilDenied(() => agent.create(ADDRESS_LEASES, lease(ON_NODE_2), { dryRun: true }));
  });

  describe('for an agent whose token names its node', () => {
    const creations: { name: string; given: AddressLease; expect?: string }[] = [
      { name: 'it may lease an address to a pod of its node', given: lease() },
      { name: 'it may lease an IPv6 address', given: lease({ ...ON_NODE_1, address: parseAddress('fd00::5') }) },
      { name: 'it may lease an address without a MAC address', given: lease({ owner: WEB, node: 'node-1' }) },
      {
        name: 'it may lease an address to a pod with a long name',
        given: lease({ ...ON_NODE_1, owner: { ...WEB, name: `w${'eb'.repeat(40)}` } }),
      },
      {
        name: 'it may not lease an address to a pod of another node',
        given: lease(ON_NODE_2),
        expect: `${OWN_NODE} "node-2": only the agent of that node may write this lease`,
      },
      { name: 'it may not lease to a pod without a node', given: lease({ owner: WEB }), expect: `${OWN_NODE} ""` },
      {
        name: 'it may not lease an address to a claim',
        given: lease({ ...ON_NODE_1, owner: CLAIM }),
        expect: `${PODS_ONLY} "IPAMClaim": ipam allocates those of claims`,
      },
      { name: 'it may not reserve an address', given: RESERVED, expect: `${PODS_ONLY} ""` },
      {
        name: 'it may not lease it released',
        given: changed(lease(), RELEASED_AT),
        expect: 'does not create released leases',
      },
      {
        name: 'it may not create a lease with a finalizer',
        given: changed(lease(), { metadata: { finalizers: ['a.b/c'] } }),
        expect: NO_END,
      },
      {
        name: 'it may not create a lease with an owner reference',
        given: changed(lease(), {
          metadata: { ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: 'n', uid: 'n' }] },
        }),
        expect: NO_END,
      },
      {
        name: 'it may not create a reserved lease of a pod',
        given: changed(lease(), { spec: { reserved: true } }),
        expect: 'an agent does not reserve addresses',
      },
      ...Object.entries({
        [LEASE_NODE]: 'node-2',
        [LEASE_OWNER_KIND]: 'IPAMClaim',
        [LEASE_OWNER_NAMESPACE]: 'b',
        [LEASE_OWNER_UID]: 'db-1',
        [LEASE_POOL]: 'red',
        [LEASE_FAMILY]: 'IPv6',
        [LEASE_MAC]: '02-00-00-00-00-02',
        [LEASE_OWNER_NAME]: `web-${'0'.repeat(10)}`,
      }).map(([label, value]) => ({
        name: `it may not create a lease with a wrong label ${label}`,
        given: changed(lease(), { labels: { [label]: value } }),
        expect: `${LABELS}${label.slice(18)};`,
      })),
      {
        name: 'it may not create a lease with a label for a field that its spec lacks',
        given: changed(lease({ owner: WEB, node: 'node-1' }), { labels: { [LEASE_MAC]: '02-00-00-00-00-01' } }),
        expect: `${LABELS}mac;`,
      },
      {
        name: 'it may not create a lease without labels',
        given: { ...lease(), metadata: { name: NAME } },
        expect: `${LABELS}pool, ipam.holdfast.dev/family, `,
      },
      { name: 'it may set labels of other software', given: changed(lease(), { labels: { mine: 'yes' } }) },
    ];
    for (const { name, given, expect: words } of creations) {
      it(name, () => expectDenial(agent.create(ADDRESS_LEASES, given, { dryRun: true }), words));
    }

    const changes: { name: string; from: AddressLease; to: object; expect?: string }[] = [
      {
        name: 'it may move a lease to the new sandbox of the pod',
        from: lease(),
        to: {
          metadata: { labels: { [LEASE_MAC]: '02-00-00-00-00-02' } },
          spec: { containerID: 'sandbox-2', mac: '02:00:00:00:00:02' },
        },
      },
      {
        name: 'it may not change a field without its label',
        from: lease(),
        to: { spec: { mac: '02:00:00:00:00:02' } },
        expect: `${LABELS}mac;`,
      },
      {
        name: 'it may not move a lease to another node',
        from: lease(),
        to: { metadata: { labels: { [LEASE_NODE]: 'node-2' } }, spec: { node: 'node-2' } },
        expect: OWN_NODE,
      },
      {
        name: 'it may not release a lease of another node',
        from: lease(ON_NODE_2),
        to: RELEASED_AT,
        expect: `10.0.0.5 belongs to Pod a/db on node node-2: the agent of node node-1 ${FOREIGN}`,
      },
      {
        name: 'it may not take over a held lease of another node',
        from: lease(ON_NODE_2),
        to: { metadata: { labels: { [LEASE_NODE]: 'node-1' } }, spec: { node: 'node-1' } },
        expect: FOREIGN,
      },
      {
        name: 'it may not change a lease of another node',
        from: lease(ON_NODE_2),
        to: { metadata: { labels: { mine: 'yes' } } },
        expect: FOREIGN,
      },
      {
        name: 'it may not release a lease of a claim',
        from: lease({ owner: CLAIM }),
        to: RELEASED_AT,
        expect: `belongs to IPAMClaim a/vm1.blue: the agent of node node-1 ${FOREIGN}`,
      },
      {
        name: 'it may not release a lease of a claim that is used on its node',
        from: lease({ ...ON_NODE_1, owner: CLAIM }),
        to: RELEASED_AT,
        expect: `belongs to IPAMClaim a/vm1.blue on node node-1: the agent of node node-1 ${FOREIGN}`,
      },
      {
        name: 'it may not allocate a released lease to a claim',
        from: changed(lease({ owner: CLAIM }), RELEASED_AT),
        to: { spec: { releasedAt: null, node: 'node-1' }, metadata: { labels: { [LEASE_NODE]: 'node-1' } } },
        expect: PODS_ONLY,
      },
      {
        name: 'it may not move a released lease of another node to its node',
        from: changed(lease(ON_NODE_2), RELEASED_AT),
        to: { metadata: { labels: { [LEASE_NODE]: 'node-1' } }, spec: { node: 'node-1' } },
        expect: 'changes a released lease only to allocate it',
      },
      { name: 'it cannot add a finalizer', from: lease(), to: { metadata: { finalizers: ['a.b/c'] } }, expect: NO_END },
      {
        name: 'it cannot add an owner reference',
        from: lease(),
        to: { metadata: { ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: 'n', uid: 'n' }] } },
        expect: NO_END,
      },
      {
        name: 'it may not move a lease to its node that no node uses',
        from: lease({ owner: WEB }),
        to: { metadata: { labels: { [LEASE_NODE]: 'node-1' } }, spec: { node: 'node-1' } },
        expect: FOREIGN,
      },
      {
        name: 'it may not change a released lease of its node that stays released',
        from: changed(lease(), RELEASED_AT),
        to: { spec: { containerID: 'sandbox-2' } },
        expect: 'changes a released lease only to allocate it',
      },
      {
        name: 'it may release a lease that has a finalizer of other software',
        from: changed(lease(), { metadata: { finalizers: ['a.b/c'] } }),
        to: RELEASED_AT,
      },
      {
        name: 'it may not remove a finalizer of other software',
        from: changed(lease(), { metadata: { finalizers: ['a.b/c'] } }),
        to: { metadata: { finalizers: null } },
        expect: NO_END,
      },
    ];
    for (const { name, from, to, expect: words } of changes) {
      it(name, async () => {
        const { metadata } = await cluster.admin.create(ADDRESS_LEASES, from);
        try {
          await expectDenial(agent.patch(ADDRESS_LEASES, metadata, { type: 'merge', body: to }), words);
        } finally {
          await cluster.admin.patch(ADDRESS_LEASES, metadata, {
            type: 'merge',
            body: { metadata: { finalizers: null } },
          });
          await cluster.admin.delete(ADDRESS_LEASES, metadata);
        }
      });
    }

    it('it may create and release a lease, and allocate leases that another node or a claim released', async () => {
      const steps = [request(ON_NODE_1), request({ ...ON_NODE_1, owner: DB })];
      let current = await writeLease(agent, createLease(steps[0]!));
      for (const former of [undefined, request(ON_NODE_2), request({ owner: CLAIM })]) {
        current = await writeLease(agent, releaseLease(readLease(current!), RELEASED));
        if (former !== undefined) {
          current = await writeLease(cluster.admin, reallocateLease(readLease(current!), former));
          current = await writeLease(cluster.admin, releaseLease(readLease(current!), RELEASED));
        }
        current = await writeLease(agent, reallocateLease(readLease(current!), steps[1]!));
      }
      expect(current?.spec).to.deep.equal(lease({ ...ON_NODE_1, owner: DB }).spec);
      await cluster.admin.delete(ADDRESS_LEASES, { name: NAME });
    });

    it('it gets a conflict, not a denial by the policy, if another writer changed the lease first', async () => {
      const seen = readLease(await cluster.admin.create(ADDRESS_LEASES, changed(lease(), RELEASED_AT)));
      await writeLease(cluster.admin, reallocateLease(seen, request({ owner: CLAIM })));
      const late = await requestErrorOf(writeLease(agent, reallocateLease(seen, request(ON_NODE_1))));
      expect(late).to.include({ status: 409, reason: 'Conflict' });
      const second = await requestErrorOf(writeLease(agent, createLease(request(ON_NODE_1))));
      expect(second).to.include({ status: 409, reason: 'AlreadyExists' });
      await cluster.admin.delete(ADDRESS_LEASES, { name: NAME });
    });

    it('RBAC does not allow it to delete or replace leases', async () => {
      const created = await cluster.admin.create(ADDRESS_LEASES, lease());
      await expectDenial(agent.delete(ADDRESS_LEASES, created.metadata), 'cannot delete resource "addressleases"');
      await expectDenial(agent.replace(ADDRESS_LEASES, created), 'cannot update resource "addressleases"');
      await cluster.admin.delete(ADDRESS_LEASES, created.metadata);
    });
  });

  it('an agent cannot delete leases, even its own, if RBAC allows it by mistake', async () => {
    const mighty = await cluster.as(AGENT_USER, 'node-1');
    for (const given of [lease(), changed(lease(), RELEASED_AT), RESERVED]) {
      await cluster.admin.create(ADDRESS_LEASES, given);
      await expectDenial(mighty.delete(ADDRESS_LEASES, given.metadata), NO_DELETE);
      await cluster.admin.delete(ADDRESS_LEASES, given.metadata);
    }
  });
});
