import { expect } from 'chai';
import { type Pod, podInterfaceName } from '../../api/pod.js';
import { IPS_ALLOCATED } from '../../api/names.js';
import { bareAddress } from '../../test/bare-address.js';
import { SuspendedHoldfast } from '../../bed/ipam-extensions/suspended-holdfast.js';
import { describeStory } from '../../bed/story/describe.js';
import { bridgeOf } from '../../bed/story/networks.js';
import { itWithWireStory, type WireStory } from '../../bed/story/wire/wire-story.js';

const DATA = podInterfaceName('data');

describeStory('A VM that runs when persistent addresses are allowed', (story) => {
  /** Starts a VM on a network without Holdfast's claims. */
  async function start(wire: WireStory): Promise<{ launcher: Pod; address: string }> {
    await story().runVm('vm1', { data: 'blue' });
    const launcher = await wire.launcher('vm1');
    return { launcher, address: await wire.addressOf(launcher, DATA) };
  }

  async function useStaticIpam(address: string): Promise<void> {
    const network = `${story().namespace}-blue`;
    const plugin = { type: 'bridge', bridge: bridgeOf(network), ipam: { type: 'static', addresses: [{ address }] } };
    await story().network('blue', { config: { cniVersion: '1.0.0', name: network, ...plugin } });
  }

  async function expectKept(wire: WireStory, address: string): Promise<void> {
    await story().migrate('vm1', 'Succeeded');
    await wire.waitForAddresses(await wire.launcher('vm1'), DATA, [address]);
    await story().restart('vm1');
    await wire.waitForAddresses(await wire.launcher('vm1'), DATA, [address]);
    await story().addresses.waitForExactIPs('vm1.data', [address]);
  }

  itWithWireStory('keeps its address, through migration and restart', story, async (wire) => {
    const subnets = [{ cidr: '10.77.1.0/24' }];
    await story().network('blue', { network: `${story().namespace}-blue`, subnets, persistent: false });
    const { launcher, address } = await start(wire);
    const neighbour = await wire.createNeighbour('blue');
    await story().addresses.createNetwork('blue', subnets);
    await story().addresses.waitForExactIPs('vm1.data', [address]);
    const lease = (await story().addresses.leases()).get(bareAddress(address));
    expect(lease?.spec.owner).to.include({ kind: 'IPAMClaim', name: 'vm1.data' });
    await wire.waitForAddresses(launcher, DATA, [address]);
    await wire.waitReachable(neighbour, [address]);
    await expectKept(wire, address);
    await wire.deletePod('neighbour');
    await story().deleteVm('vm1', 'Background');
    await story().addresses.waitHeld([]);
  });

  itWithWireStory('keeps the address that another IPAM gave it', story, async (wire) => {
    await useStaticIpam('10.77.2.7/24');
    const { address } = await start(wire);
    expect(address).to.equal('10.77.2.7/24');
    await story().addresses.createNetwork('blue', ['10.77.2.0/24']);
    await story().addresses.waitForExactIPs('vm1.data', [address]);
    await expectKept(wire, address);
  });

  itWithWireStory('keeps the address with which it started while Holdfast did not run', story, async (wire) => {
    const { bed } = wire.context;
    await useStaticIpam('10.77.4.7/24');
    const suspended = await SuspendedHoldfast.suspend(bed);
    try {
      await bed.ipam.stop();
      expect((await start(wire)).address).to.equal('10.77.4.7/24');
    } finally {
      await bed.ipam.start();
      await suspended.resume();
    }
    await story().addresses.createNetwork('blue', ['10.77.4.0/24']);
    await story().addresses.waitForExactIPs('vm1.data', ['10.77.4.7/24']);
    await wire.waitForAddresses(await wire.launcher('vm1'), DATA, ['10.77.4.7/24']);
    await expectKept(wire, '10.77.4.7/24');
  });

  itWithWireStory(
    'is told if its address is not in the pool, and gets another one at its next start',
    story,
    async (wire) => {
      await useStaticIpam('192.0.2.7/24');
      const { launcher, address } = await start(wire);
      await story().addresses.createNetwork('blue', ['10.77.3.0/24']);
      const { message } = await story().addresses.waitForRefusal('vm1.data', 'AddressOutOfRange');
      expect(message).to.match(
        new RegExp(
          `^Pod ${launcher.metadata.name} runs with 192\\.0\\.2\\.7, which pool .* does not lease: add it to the pool`,
        ),
      );
      await wire.waitForAddresses(launcher, DATA, [address]);
      await story().restart('vm1');
      expect((await story().addresses.waitForIPs('vm1.data'))[0]).to.match(/^10\.77\.3\./);
      const { status } = await story().addresses.waitForCondition('vm1.data', IPS_ALLOCATED, 'True');
      expect(status).to.equal('True');
    },
  );
});
