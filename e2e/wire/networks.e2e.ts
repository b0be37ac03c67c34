import { expect } from 'chai';
import { bareAddress } from '../../test/bare-address.js';
import { podInterfaceName } from '../../api/pod.js';
import { describeStory } from '../../bed/story/describe.js';
import { bridgeOf } from '../../bed/story/networks.js';
import type { Story } from '../../bed/story/story.js';
import { itWithWireStory } from '../../bed/story/wire/wire-story.js';

const DATA = podInterfaceName('data');
const VERSIONS = ['0.3.0', '0.3.1', '0.4.0', '1.0.0', '1.1.0'] as const;

describeStory('A real network', (story) => {
  for (const [what, subnets] of [
    ['IPv6 only', ['fd00:74::/64']],
    ['of both families', ['10.74.0.0/24', 'fd00:74:1::/64']],
  ] as const) {
    itWithWireStory(
      `may be ${what}, with one address of each family for a VM on source and target`,
      story,
      async (wire) => {
        await story().addresses.createNetwork('blue', subnets);
        await story().runVm('vm1', { data: 'blue' });
        const addresses = await story().addresses.waitForIPs('vm1.data');
        expect(addresses).to.have.length(subnets.length);
        const neighbour = await wire.createNeighbour('blue');
        expect(await wire.context.wire.addressesOf(neighbour, 'net1')).to.have.length(subnets.length);
        const look = async () => {
          const launcher = await wire.launcher('vm1');
          await wire.waitForAddresses(launcher, DATA, addresses);
          const { addresses: states = [] } = (await wire.context.wire.interfaceOf(launcher, DATA)) ?? {};
          expect(states.filter(({ dadFailed }) => dadFailed)).to.deep.equal([]);
          await wire.waitReachable(neighbour, addresses);
        };
        await look();
        await story().migrate('vm1', 'Succeeded');
        await look();
      },
    );
  }

  itWithWireStory('may have any CNI version that bridge supports, and be a list of plugins', story, async (wire) => {
    const nads = [...VERSIONS, 'list'].map((version, index) => ({ name: `v${index}`, version }));
    for (const [index, { name, version }] of nads.entries()) {
      const network = `${story().namespace}-${name}`;
      const ipam = { type: 'holdfast', subnets: [{ cidr: `10.74.${index + 1}.0/24` }] };
      const plugin = { type: 'bridge', bridge: bridgeOf(network), allowPersistentIPs: true, ipam };
      const config =
        version === 'list'
          ? { cniVersion: '1.0.0', name: network, plugins: [plugin] }
          : { cniVersion: version, name: network, ...plugin };
      await story().network(name, { config });
    }
    await wire.createPod('pod-1', { networks: nads });
    await story().createVm('vm1', Object.fromEntries(nads.map(({ name }) => [name, name])));
    const pod = await wire.waitRunning('pod-1');
    await story().waitRunning('vm1');
    const launcher = await wire.launcher('vm1');
    for (const [index, { name }] of nads.entries()) {
      expect(await wire.addressOf(pod, `net${index + 1}`)).to.match(new RegExp(`^10\\.74\\.${index + 1}\\.\\d+/24$`));
      const addresses = await story().addresses.waitForIPs(`vm1.${name}`);
      await wire.waitForAddresses(launcher, podInterfaceName(name), addresses);
      await wire.waitReachable(pod, addresses);
    }
    const held = await story().addresses.heldAddresses();
    expect(held).to.have.length(2 * nads.length);
    await wire.deletePod('pod-1');
    const claimed = await Promise.all(nads.map(({ name }) => story().addresses.waitForIPs(`vm1.${name}`)));
    await story().addresses.waitHeld(claimed.flat().map(bareAddress));
  });

  itWithWireStory('provides gateway, routes and DNS to pods and launchers', story, async (wire) => {
    const subnets = [{ cidr: '10.74.8.0/24', gateway: '10.74.8.1' }];
    const routes = [{ dst: '192.168.77.0/24', gw: '10.74.8.9' }, { dst: '172.31.0.0/16' }];
    const dns = { nameservers: ['10.74.8.53'], search: ['blue.test'] };
    await story().addresses.createNetwork('blue', subnets, { routes, dns });
    await story().runVm('vm1', { data: 'blue' });
    const launcher = await wire.launcher('vm1');
    await wire.waitForAddresses(launcher, DATA, await story().addresses.waitForIPs('vm1.data'));
    const pod = await wire.createNeighbour('blue');
    for (const [each, name] of [
      [launcher, DATA],
      [pod, 'net1'],
    ] as const) {
      const table = await wire.routes(each);
      expect(table).to.include(`192.168.77.0/24 via 10.74.8.9 dev ${name}`);
      expect(table).to.include(`172.31.0.0/16 via 10.74.8.1 dev ${name}`);
      expect((await wire.reportedInterface(each, name))?.dns).to.deep.equal(dns);
    }
  });
});

describeStory('A network without allowPersistentIPs', (story) => {
  itWithWireStory('gives a VM an address as long as its launcher exists', story, async (wire) => {
    await withoutFlag(story(), 'blue', '10.74.9.0/24');
    await story().runVm('vm1', { data: 'blue' });
    const launcher = await wire.launcher('vm1');
    const address = await wire.addressOf(launcher, DATA);
    await wire.waitReachable(await wire.createNeighbour('blue'), [address]);
    expect(await story().claimNames()).to.deep.equal([]);
    const lease = (await story().addresses.leases()).get(bareAddress(address));
    expect(lease?.spec.owner).to.include({ kind: 'Pod', uid: launcher.metadata.uid });
    await wire.deletePod('neighbour');
    await story().stop('vm1');
    await story().addresses.waitHeld([]);
  });

  itWithWireStory('gives the target of a migration another address', story, async (wire) => {
    await withoutFlag(story(), 'blue', '10.74.10.0/24');
    await story().runVm('vm1', { data: 'blue' });
    const before = await wire.addressOf(await wire.launcher('vm1'), DATA);
    await story().migrate('vm1', 'Succeeded');
    const after = await wire.addressOf(await wire.launcher('vm1'), DATA);
    expect(after).not.to.equal(before);
    await story().addresses.waitHeld([bareAddress(after)]);
  });

  itWithWireStory('still serves claims that were created before the flag was removed', story, async (wire) => {
    await story().addresses.createNetwork('blue', ['10.74.11.0/24']);
    await story().runVm('vm1', { data: 'blue' });
    const addresses = await story().addresses.waitForIPs('vm1.data');
    await withoutFlag(story(), 'blue', '10.74.11.0/24');
    await story().waitControllerIdle(); // it knows the NAD before the VM
    await story().runVm('vm2', { data: 'blue' });
    expect(await story().claimNames()).to.deep.equal(['vm1.data']);
    await story().restart('vm1');
    await wire.waitForAddresses(await wire.launcher('vm1'), DATA, addresses);
    await story().migrate('vm1', 'Succeeded');
    await wire.waitForAddresses(await wire.launcher('vm1'), DATA, addresses);
    await wire.waitReachable(await wire.launcher('vm2'), addresses);
    expect(await wire.addressOf(await wire.launcher('vm2'), DATA)).not.to.equal(addresses[0]);
    await story().deleteVm('vm1', 'Background');
    await story().waitForClaims([]);
  });
});

/** The NAD that `addresses.createNetwork` creates, without the flag. */
async function withoutFlag(story: Story, nad: string, cidr: string): Promise<void> {
  await story.network(nad, { network: `${story.namespace}-${nad}`, subnets: [{ cidr }], persistent: false });
}
