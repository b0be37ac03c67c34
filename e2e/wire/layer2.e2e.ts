import { expect } from 'chai';
import type { AddressPoolSpec } from '../../api/address-pool.js';
import { AllocationReason, CLAIM_NAD, REQUESTED_ADDRESSES_ANNOTATION } from '../../api/names.js';
import { podInterfaceName } from '../../api/pod.js';
import { ADDRESS_POOLS } from '../../kube/resources.js';
import { bareAddress } from '../../test/bare-address.js';
import { until, untilValue } from '../../bed/processes/wait.js';
import { guestLocation } from '../../bed/node/wired-guests.js';
import { ClaimLeaseObserver } from '../../bed/story/claim-lease-observer.js';
import { describeStory } from '../../bed/story/describe.js';
import { bridgeOf } from '../../bed/story/networks.js';
import type { Story } from '../../bed/story/story.js';
import { useServedNetwork } from '../../bed/story/wire/served-network.js';
import { itWithWireStory } from '../../bed/story/wire/wire-story.js';

const DATA = podInterfaceName('data');
const EXTRA = podInterfaceName('extra');
const COOLDOWN_S = 3;

function bridgeConfig(network: string): object {
  return { cniVersion: '0.4.0', name: network, type: 'bridge', bridge: bridgeOf(network), allowPersistentIPs: true };
}

/** Creates a pool that serves guests, the NAD `pods` with IPAM, and the NAD `vms` of the same network and bridge without. */
async function createNetworks(story: Story, spec: Omit<AddressPoolSpec, 'network'>): Promise<string> {
  const network = `${story.namespace}-blue`;
  await story.addresses.createPool(network, { guest: {}, namespaces: [story.namespace], ...spec, network });
  await story.network('pods', { network, subnets: [] });
  await story.network('vms', { config: { ...bridgeConfig(network), disableContainerInterface: true } });
  return network;
}

describeStory('A VM on a layer-2 network', (story) => {
  itWithWireStory('shares the pool with pods, and keeps its address until it is deleted', story, async (wire) => {
    const subnet = { cidr: '10.79.1.0/24', ranges: ['10.79.1.10-10.79.1.11'] };
    const pool = await createNetworks(story(), { subnets: [subnet] });
    await story().runVm('vm1', { data: 'vms' });
    const mine = await story().addresses.waitForIPs('vm1.data');
    const launcher = await wire.launcher('vm1');
    await wire.waitForAddresses(launcher, DATA, []);
    expect(await story().references('vm1')).to.deep.equal([{ [DATA]: 'vm1.data' }]);

    const neighbour = await wire.createNeighbour('pods');
    const last = await wire.addressOf(neighbour);
    expect([...mine, last].map(bareAddress).sort()).to.deep.equal(['10.79.1.10', '10.79.1.11']);
    await story().createVm('vm2', { data: 'vms' });
    await story().addresses.waitForRefusal('vm2.data', 'SubnetExhausted');
    const body = { spec: { subnets: [{ ...subnet, ranges: ['10.79.1.10-10.79.1.12'] }] } };
    await story().client.patch(ADDRESS_POOLS, { name: pool }, { type: 'merge', body });
    await story().addresses.waitForExactIPs('vm2.data', ['10.79.1.12/24']);

    await story().migrate('vm1', 'Succeeded');
    await story().addresses.waitForExactIPs('vm1.data', mine);
    await story().restart('vm1');
    await story().addresses.waitForExactIPs('vm1.data', mine);
    await story().deleteVm('vm1', 'Background');
    await story().addresses.waitHeld([last, '10.79.1.12'].map(bareAddress));
  });

  itWithWireStory('keeps claim and addresses when it moves to a NAD with IPAM and back', story, async (wire) => {
    await createNetworks(story(), { subnets: [{ cidr: '10.79.2.0/24' }, { cidr: 'fd00:79:2::/64' }] });
    await story().runVm('vm1', { data: 'vms' });
    const mine = await story().addresses.waitForIPs('vm1.data');
    expect(mine).to.have.length(2);
    const { uid } = (await story().waitForClaim('vm1.data')).metadata;
    for (const nad of ['pods', 'vms']) {
      await story().stop('vm1');
      await story().swapNetwork('vm1', 'data', nad);
      await story().claims.waitFor('vm1.data', `to name NAD ${nad}`, ({ metadata }) => {
        return metadata.annotations?.[CLAIM_NAD] === `${story().namespace}/${nad}`;
      });
      await story().start('vm1');
      await story().waitRunning('vm1');
      await wire.waitForAddresses(await wire.launcher('vm1'), DATA, nad === 'pods' ? mine : []);
      expect((await story().waitForClaim('vm1.data')).metadata.uid).to.equal(uid);
      expect(await story().addresses.waitForIPs('vm1.data')).to.deep.equal(mine);
    }
    expect(await story().claimNames()).to.deep.equal(['vm1.data']);
  });

  itWithWireStory('is told why it has no address, and gets one when the pool serves its namespace', story, async () => {
    const subnets = [{ cidr: '10.79.3.0/24' }];
    const pool = await createNetworks(story(), { subnets, namespaces: ['elsewhere'] });
    await story().runVm('vm1', { data: 'vms' });
    const { message } = await story().waitForEvent('vm1', 'IPAMClaimNotHonoured');
    expect(message).to.include('no AddressPool with spec.guest serves network').and.to.include(story().namespace);
    expect((await story().waitForClaim('vm1.data')).status).to.equal(undefined);
    const body = { spec: { namespaces: [story().namespace] } };
    await story().client.patch(ADDRESS_POOLS, { name: pool }, { type: 'merge', body });
    await story().addresses.waitForIPs('vm1.data');
  });

  itWithWireStory('has an address on an interface that is plugged in, until it is unplugged', story, async (wire) => {
    await createNetworks(story(), { subnets: [{ cidr: '10.79.4.0/24' }] });
    await story().runVm('vm1', { data: 'vms' });
    const mine = await story().addresses.waitForIPs('vm1.data');
    const launcher = await wire.launcher('vm1');
    await story().plugInterface('vm1', 'extra', 'vms');
    await story().waitAttached('vm1', 'extra');
    const plugged = await story().addresses.waitForIPs('vm1.extra');
    await story().addresses.waitHeld([...mine, ...plugged].map(bareAddress));
    await wire.waitForAddresses(launcher, EXTRA, []);
    expect(await story().references('vm1')).to.deep.equal([{ [DATA]: 'vm1.data', [EXTRA]: 'vm1.extra' }]);

    await story().unplugInterface('vm1', 'extra');
    await story().waitDetached('vm1', 'extra');
    await story().waitForClaims(['vm1.data']);
    await story().addresses.waitHeld(mine.map(bareAddress));
    expect((await wire.launcher('vm1')).metadata.uid).to.equal(launcher.metadata.uid);
  });

  itWithWireStory('has the address that it requests, once that of a deleted VM has cooled down', story, async () => {
    const network = await createNetworks(story(), { subnets: [{ cidr: '10.79.5.0/24' }], cooldownSeconds: COOLDOWN_S });
    const annotations = { [REQUESTED_ADDRESSES_ANNOTATION]: '{"data": ["10.79.5.77"]}' };
    const create = (name: string) => story().createVm(name, { data: 'vms' }, { annotations });
    await create('vm1');
    await story().addresses.waitForExactIPs('vm1.data', ['10.79.5.77/24']);
    await story().waitRunning('vm1');
    await create('vm2');
    await story().addresses.waitForRefusal('vm2.data', AllocationReason.Conflict);

    const { client, namespace } = story();
    const observer = new ClaimLeaseObserver(client, { space: network, cooldownMs: COOLDOWN_S * 1_000, namespace });
    observer.start();
    try {
      await until('the lease to be observed', () => observer.taken === 1);
      await story().deleteVm('vm1', 'Background');
      await story().addresses.waitForExactIPs('vm2.data', ['10.79.5.77/24']);
      await until('its release and its next allocation to be observed', () => observer.taken === 2);
    } finally {
      await observer.stop();
    }
    expect(observer.violations).to.deep.equal([]);
    await story().waitRunning('vm2');
  });

  itWithWireStory(
    'keeps the addresses of routers out of its launcher by disableContainerInterface',
    story,
    async (on) => {
      const network = await createNetworks(story(), { subnets: [{ cidr: '10.79.6.0/24' }] });
      await story().network('open', { config: bridgeConfig(network) });
      await story().runVm('vm1', { data: 'vms', extra: 'open' });
      const launcher = await on.launcher('vm1');
      const router = `${story().namespace}-router`;
      const { wire } = on.context.wire;
      await wire.addHost(router, bridgeOf(network), []);
      try {
        const addressesOf = (name: string) => on.context.wire.addressesOf(launcher, name);
        await untilValue(
          'the other interface to have an address of the router',
          async () => {
            await wire.advertiseRouter(`host/${router}`, 'eth0', 'fd00:79:6::/64');
            return addressesOf(EXTRA);
          },
          ([address]) => address?.startsWith('fd00:79:6:') === true,
        );
        expect(await addressesOf(DATA)).to.deep.equal([]);
      } finally {
        await wire.removeHost(router);
      }
    },
  );

  itWithWireStory('gets no address from Holdfast if its plugin is that of OVN-Kubernetes', story, async () => {
    const network = await createNetworks(story(), { subnets: [{ cidr: '10.79.7.0/24' }] });
    await story().network('vms', { config: { ...bridgeConfig(network), type: 'ovn-k8s-cni-overlay' } });
    await story().runVm('vm1', { data: 'vms' });
    const { message } = await story().waitForEvent('vm1', 'IPAMClaimNotHonoured');
    expect(message).to.include('its plugin is "ovn-k8s-cni-overlay"');
    expect((await story().waitForClaim('vm1.data')).status).to.equal(undefined);
    expect(await story().addresses.heldAddresses()).to.deep.equal([]);
  });
});

describeStory('An interface on a layer-2 network with responders', (story) => {
  const network = useServedNetwork({ subnets: [{ cidr: '10.79.8.0/24' }, { cidr: 'fd00:79:8::/64' }] });

  itWithWireStory(
    'gets its address by DHCP when it is plugged in, and no answer once it is unplugged',
    story,
    async (on) => {
      const { clients } = network().services;
      const { wire } = on.context.wire;
      await network().attach(story(), 'flat');
      await story().createVm('vm1', { data: 'flat' });
      const guest = guestLocation(await story().waitRunning('vm1'));
      await story().plugInterface('vm1', 'extra', 'flat');
      await story().waitAttached('vm1', 'extra');
      const plugged = (await story().addresses.waitForIPs('vm1.extra')).map(bareAddress);
      const eth2 = await until('the guest to have the interface', async () => {
        return (await wire.interfaces(guest)).find(({ name }) => name === 'eth2');
      });
      const client = await clients.start(wire, guest, 'udhcpc', 'eth2');
      expect(plugged).to.include((await client.waitForLease()).ip);
      await client.command.stop();

      await story().unplugInterface('vm1', 'extra');
      await story().waitForClaims(['vm1.data']);
      await network().untilGuests(1);
      const copy = `${story().namespace}-copy`;
      await wire.addHost(copy, network().bridge, []);
      await wire.setMac(`host/${copy}`, 'eth0', eth2.mac);
      const unanswered = await clients.start(wire, `host/${copy}`, 'udhcpc');
      await until('three discovers', () => unanswered.command.output.stderr.split('broadcasting discover').length > 3);
      expect(unanswered.leases()).to.deep.equal([]);
      await wire.removeHost(copy);
    },
  );

  itWithWireStory('reaches the responders across nodes with MLD snooping and a querier', story, async (on) => {
    const { clients } = network().services;
    const { bed } = on.context;
    const { wire } = on.context.wire;
    const ip = (node: string, tool: 'ip' | 'bridge', args: readonly string[]) =>
      wire.run(`node/${node}`, { command: `/sbin/${tool}`, args });
    const snooping = ['mcast_snooping', '1', 'mcast_querier', '1', 'mcast_startup_query_interval', '50'];
    for (const node of bed.nodes) {
      const args = ['link', 'set', 'dev', network().bridge, 'type', 'bridge', ...snooping];
      expect(await ip(node, 'ip', args)).to.include({ exitCode: 0 });
    }
    await network().attach(story(), 'flat');
    await story().createVm('vm1', { data: 'flat' });
    const guest = guestLocation(await story().waitRunning('vm1'));
    const mine = (await story().addresses.waitForIPs('vm1.data')).map(bareAddress);
    for (const node of bed.nodes) {
      await until(`the bridge of ${node} to know the groups of responders`, async () => {
        const { stdout } = await ip(node, 'bridge', ['mdb', 'show', 'dev', network().bridge]);
        return ['ff02::1:2 ', 'ff02::2 '].every((group) => stdout.includes(group));
      });
    }
    const client = await clients.start(wire, guest, 'dhclient -6', 'eth1');
    expect(mine).to.include((await client.waitForLease()).ip);
    await client.command.stop();
  });
});
