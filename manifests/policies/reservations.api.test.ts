import { expect } from 'chai';
import type { AddressLease } from '../../api/address-lease.js';
import { expireLease, readLease, releaseLease, reallocateLease } from '../../addressing/lease/lease.js';
import type { Client } from '../../kube/client.js';
import { ADDRESS_LEASES, NODES } from '../../kube/resources.js';
import { writeLease } from '../../cluster/lease-writes.js';
import { type PolicyCluster, untilDenied, usePolicyCluster } from '../testing/policy-cluster.js';
import { AGENT, CLAIM, ON_NODE_1, ON_NODE_2, RESERVED, changed, lease, request } from '../testing/node-leases.js';
import { requestErrorOf } from '../../test/request-error.js';

const RELEASED = Date.parse('2020-01-01T00:00:00Z');
const RELEASED_AT = { releasedAt: new Date(RELEASED).toISOString() };
const MAC = ON_NODE_1.mac;
const OTHER_MAC = '02:00:00:00:00:02';
const TABLE = { reserved: true } as const;
/** Changes that allocate a lease to a pod of the agent's node. */
const taking = (more: object = {}) => ({
  metadata: { labels: lease().metadata.labels },
  spec: { ...lease().spec, ...more },
});
const AGAIN = { owner: null, node: null, containerID: null, interface: null, releasedAt: null };

const FOREIGN =
  'the agent of node node-1 may only change leases of pods of that node, and allocate released addresses or those reserved';
const { mac: _nobodys, ...printer } = RESERVED.spec;
const FOR_NOBODY: AddressLease = { ...RESERVED, spec: printer };

/** By kind and admission policy together: whichever refuses first. */
describe('reserved addresses, on a kube-apiserver', function () {
  let cluster: PolicyCluster;
  let agent: Client;
  let ipam: Client;

  usePolicyCluster(this, async (started) => {
    cluster = started;
    await cluster.admin.create(NODES, { metadata: { name: 'node-1' } });
    agent = await cluster.withToken(AGENT, { node: 'node-1' });
    ipam = await cluster.withToken({ namespace: 'holdfast-system', name: 'holdfast-ipam' });
    await untilDenied(() => agent.create(ADDRESS_LEASES, lease(ON_NODE_2), { dryRun: true }));
  });

  describe('an agent', () => {
    const cases: { name: string; from: AddressLease; to: object; expect?: string }[] = [
      { name: 'allocates an address reserved for the MAC address of its pod', from: RESERVED, to: taking(TABLE) },
      {
        name: 'cannot remove the reservation when it allocates the address',
        from: RESERVED,
        to: taking(),
        expect: 'to allocate it, keep mac and set reserved in the same write',
      },
      {
        name: 'cannot allocate an address that is reserved for another MAC address',
        from: changed(RESERVED, { spec: { mac: OTHER_MAC } }),
        to: taking(TABLE),
        expect: `the address is reserved for MAC address ${OTHER_MAC}: to allocate it, keep mac`,
      },
      {
        name: 'cannot allocate an address that is reserved for nobody',
        from: FOR_NOBODY,
        to: taking(TABLE),
        expect: 'the address is reserved without a MAC address: delete the lease to make the address free',
      },
      {
        name: 'cannot change the MAC address of a reservation',
        from: RESERVED,
        to: { spec: { mac: OTHER_MAC } },
        expect: `10.0.0.5 is reserved for ${MAC}: ${FOREIGN}`,
      },
      {
        name: 'cannot change a reservation without allocating it',
        from: RESERVED,
        to: { metadata: { labels: { mine: 'yes' } } },
        expect: 'an agent allocates addresses to pods only, and spec.owner.kind is ""',
      },
      {
        name: 'allocates a reserved address that a pod of another node released, for its MAC address',
        from: changed(lease(ON_NODE_2), { spec: { ...RELEASED_AT, ...TABLE } }),
        to: taking({ releasedAt: null }),
      },
      {
        name: 'cannot allocate a released reserved address to another MAC address',
        from: changed(lease({ ...ON_NODE_2, mac: OTHER_MAC }), { spec: { ...RELEASED_AT, ...TABLE } }),
        to: taking({ releasedAt: null }),
        expect: `the address is reserved for MAC address ${OTHER_MAC}: leave reserved`,
      },
      {
        name: 'cannot take over a reserved address from a pod of another node',
        from: changed(lease(ON_NODE_2), { spec: TABLE }),
        to: { metadata: taking().metadata, spec: { node: 'node-1' } },
        expect: `10.0.0.5 belongs to Pod a/db on node node-2: ${FOREIGN}`,
      },
      { name: 'releases a reserved address', from: changed(lease(), { spec: TABLE }), to: { spec: RELEASED_AT } },
      {
        name: 'cannot make a released lease a reservation again, because ipam does so after the cool-down',
        from: changed(lease(), { spec: { ...RELEASED_AT, ...TABLE } }),
        to: { spec: AGAIN },
        expect: 'an agent allocates addresses to pods only, and spec.owner.kind is ""',
      },
      {
        name: 'cannot remove the reservation of a lease',
        from: changed(lease(), { spec: TABLE }),
        to: { spec: { reserved: null } },
        expect: 'leave reserved and mac unchanged, or delete the lease',
      },
      {
        name: 'cannot turn a held lease into a reservation',
        from: lease(),
        to: { spec: TABLE },
        expect: 'a lease that has an owner cannot become a reservation',
      },
    ];
    for (const { name, from, to, expect: words } of cases) {
      it(name, async () => {
        const { metadata } = await cluster.admin.create(ADDRESS_LEASES, from);
        try {
          await expectWords(agent.patch(ADDRESS_LEASES, metadata, { type: 'merge', body: to }), words);
        } finally {
          await cluster.admin.delete(ADDRESS_LEASES, metadata);
        }
      });
    }

    it('cannot create a lease that becomes a reservation', () =>
      expectWords(
        agent.create(ADDRESS_LEASES, changed(lease(), { spec: TABLE }), { dryRun: true }),
        'an agent does not reserve addresses',
      ));
  });

  it('are allocated to a pod, then to a VM, repeatedly, and become the original reservation in between', async () => {
    let current = await cluster.admin.create(ADDRESS_LEASES, RESERVED);
    const turns = [
      { client: agent, by: request(ON_NODE_1) },
      { client: ipam, by: request({ owner: CLAIM, mac: MAC }) },
    ];
    for (const { client, by } of [...turns, ...turns]) {
      const held = await writeLease(client, reallocateLease(readLease(current), by));
      expect(held?.spec).to.deep.include({ mac: MAC, reserved: true, owner: by.owner });
      const released = await writeLease(client, releaseLease(readLease(held!), RELEASED));
      current = (await writeLease(ipam, expireLease(readLease(released!))))!;
      expect(current.spec).to.deep.equal({ ...RESERVED.spec, reserved: true });
      expect(current.metadata.labels).to.deep.equal({
        'ipam.holdfast.dev/pool': 'blue',
        'ipam.holdfast.dev/family': 'IPv4',
        'ipam.holdfast.dev/mac': '02-00-00-00-00-01',
      });
    }
    await cluster.admin.delete(ADDRESS_LEASES, current.metadata);
  });
});

async function expectWords(attempt: Promise<unknown>, words: string | undefined): Promise<void> {
  if (words === undefined) {
    await attempt;
    return;
  }
  const { message } = await requestErrorOf(attempt);
  expect(message).to.include(words);
  expect(message).not.to.match(/evaluation error|no such key/);
}
