import type { AddressLease } from '../../api/address-lease.js';
import { writeLease } from '../../cluster/lease-writes.js';
import { quarantineLease } from '../../addressing/lease/lease-quarantine.js';
import { expireLease, readLease } from '../../addressing/lease/lease.js';
import type { Client } from '../../kube/client.js';
import { ADDRESS_LEASES, NODES } from '../../kube/resources.js';
import { AGENT, CLAIM, ON_NODE_1, lease } from '../testing/node-leases.js';
import { type PolicyCluster, expectDenial, untilDenied, usePolicyCluster } from '../testing/policy-cluster.js';

const NAME = 'blue.10-0-0-5';
const HOST = '02:00:00:00:00:99';
const NOW = Date.UTC(2026, 0, 1);
const ONLY_IPAM = 'only ipam quarantines an address';
const QUARANTINE = { since: '2026-01-01T00:00:00Z', until: '2026-01-01T01:00:00Z', mac: HOST };
const NETWORK_ADMIN = 'netadmin';

describe('the admission policy for quarantined leases, on a kube-apiserver', function () {
  let cluster: PolicyCluster;
  let ipam: Client;
  let agent: Client;
  let netadmin: Client;

  usePolicyCluster(this, async (started) => {
    cluster = started;
    await cluster.admin.create(NODES, { metadata: { name: 'node-1' } });
    ipam = await cluster.withToken({ namespace: 'holdfast-system', name: 'holdfast-ipam' });
    agent = await cluster.withToken(AGENT, { node: 'node-1' });
    netadmin = await cluster.as(NETWORK_ADMIN);
    await untilDenied(() => netadmin.create(ADDRESS_LEASES, quarantined(), { dryRun: true }));
  });

  afterEach(() => cluster.admin.delete(ADDRESS_LEASES, { name: NAME }).catch(() => undefined));

  const held = async () => readLease(await cluster.admin.create(ADDRESS_LEASES, lease({ owner: CLAIM })));
  const quarantine = async (client: Client) => writeLease(client, quarantineLease(await held(), HOST, NOW));

  it('lets ipam quarantine an address that a claim holds', async () => {
    await quarantine(ipam);
  });

  it('does not let a network administrator quarantine an address that a claim holds', async () => {
    await expectDenial(quarantine(netadmin), ONLY_IPAM);
  });

  it('does not let a network administrator create a quarantined lease', async () => {
    await expectDenial(netadmin.create(ADDRESS_LEASES, quarantined()), ONLY_IPAM);
  });

  it('does not let an agent quarantine the address of a pod on its node', async () => {
    const ofPod = readLease(await cluster.admin.create(ADDRESS_LEASES, lease(ON_NODE_1)));
    await expectDenial(writeLease(agent, quarantineLease(ofPod, HOST, NOW)), 'denied request');
  });

  describe('on a quarantined lease', () => {
    beforeEach(() => quarantine(ipam));

    it('lets a network administrator change labels, and delete the lease', async () => {
      const body = { metadata: { labels: { checked: 'yes' } } };
      await netadmin.patch(ADDRESS_LEASES, { name: NAME }, { type: 'merge', body });
      await netadmin.delete(ADDRESS_LEASES, { name: NAME });
    });

    it('lets ipam delete the lease when it expires', async () => {
      const found = await cluster.admin.get(ADDRESS_LEASES, { name: NAME });
      await writeLease(ipam, expireLease(readLease(found)));
    });

    it('does not let an agent change or delete the lease', async () => {
      const body = { metadata: { labels: { checked: 'yes' } } };
      await expectDenial(
        agent.patch(ADDRESS_LEASES, { name: NAME }, { type: 'merge', body }),
        'the address 10.0.0.5 is quarantined: the agent of node node-1 may only change leases of pods of that node',
      );
      await expectDenial(agent.delete(ADDRESS_LEASES, { name: NAME }), 'cannot delete resource');
    });
  });
});

function quarantined(): AddressLease {
  const { metadata, spec } = lease({ owner: CLAIM });
  const { owner: _owner, ...rest } = spec;
  return { metadata, spec: { ...rest, quarantine: QUARANTINE } };
}
