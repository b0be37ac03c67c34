import { expect } from 'chai';
import { bareAddress } from '../../test/bare-address.js';
import { type Pod, podInterfaceName } from '../../api/pod.js';
import { describeStory } from '../../bed/story/describe.js';
import { untilValue } from '../../bed/processes/wait.js';
import { itWithWireStory, waitSandboxGone, type WireStory } from '../../bed/story/wire/wire-story.js';

const DATA = podInterfaceName('data');

describeStory('The address of a VM that moves', (story) => {
  /** A running VM and the addresses of its claim. */
  async function runningVm(wire: WireStory, cidr: string): Promise<{ source: Pod; addresses: string[] }> {
    await story().addresses.createNetwork('blue', [cidr]);
    await story().runVm('vm1', { data: 'blue' });
    const addresses = await story().addresses.waitForIPs('vm1.data');
    const source = await wire.launcher('vm1');
    await wire.waitForAddresses(source, DATA, addresses);
    return { source, addresses };
  }

  /** Waits until the target has its networks. */
  async function targetOf(wire: WireStory, source: Pod): Promise<Pod> {
    const launchers = await untilValue(
      'source and target to have networks',
      () => story().launchers('vm1'),
      (found) =>
        found.length === 2 && found.every(({ metadata }) => wire.context.wire.networks.find(metadata.uid ?? '')),
    );
    return launchers.find(({ metadata }) => metadata.uid !== source.metadata.uid)!;
  }

  async function leaseOf(address: string): Promise<object | undefined> {
    return (await story().addresses.leases()).get(bareAddress(address));
  }

  const isUsedBy = (pod: Pod) =>
    story().claims.waitFor('vm1.data', `to be used by ${pod.metadata.name}`, ({ status }) => {
      return status?.ownerPod?.name === pod.metadata.name;
    });

  itWithWireStory(
    'is set up on the target while the source has it, and a DEL on the source does not free it',
    story,
    async (wire) => {
      const { switches } = wire.context.bed;
      const { source, addresses } = await runningVm(wire, '10.71.0.0/24');
      const neighbour = await wire.createNeighbour('blue');
      await isUsedBy(source);
      const lease = await leaseOf(addresses[0]!);
      const move = switches.set({ migration: 'hold' }, { namespace: story().namespace });
      switches.set({ delayNetworkEnd: true }, story().ref('vm1'));

      const migration = await story().migrations.start('vm1');
      await story().migrations.waitCopying(migration);
      const target = await targetOf(wire, source);
      expect(target.spec?.nodeName).not.to.equal(source.spec?.nodeName);
      expect((await wire.reportedInterface(target, DATA))?.ips).to.deep.equal(addresses.map(bareAddress));
      await wire.waitForAddresses(source, DATA, addresses);
      await wire.waitReachable(neighbour, addresses);
      await isUsedBy(source);

      move();
      expect(await story().migrations.waitEnded(migration)).to.equal('Succeeded');
      await wire.waitForAddresses(target, DATA, addresses);
      await wire.waitReachable(neighbour, addresses);
      expect(wire.context.wire.networks.find(source.metadata.uid!), 'the sandbox of the source').not.to.equal(
        undefined,
      );

      switches.clear();
      await waitSandboxGone(wire, source);
      await story().migrations.waitForOneLauncher('vm1');
      await isUsedBy(target);
      expect(await leaseOf(addresses[0]!)).to.deep.equal(lease);
      await wire.waitForAddresses(target, DATA, addresses);
      await wire.waitReachable(neighbour, addresses);
    },
  );

  itWithWireStory('moves to the target and back', story, async (wire) => {
    const { source, addresses } = await runningVm(wire, '10.71.1.0/24');
    const neighbour = await wire.createNeighbour('blue');
    const nodes: (string | undefined)[] = [source.spec?.nodeName];
    for (let move = 0; move < 2; move++) {
      await story().migrate('vm1', 'Succeeded');
      const launcher = await wire.launcher('vm1');
      nodes.push(launcher.spec?.nodeName);
      await wire.waitForAddresses(launcher, DATA, addresses);
      await wire.waitReachable(neighbour, addresses);
    }
    expect(nodes[1]).not.to.equal(nodes[0]);
    expect(nodes[2]).to.equal(nodes[0]);
  });

  for (const end of ['fails', 'is aborted'] as const) {
    itWithWireStory(`stays on the source if its migration ${end}`, story, async (wire) => {
      const { switches } = wire.context.bed;
      const { source, addresses } = await runningVm(wire, '10.71.2.0/24');
      const neighbour = await wire.createNeighbour('blue');
      await isUsedBy(source);
      const lease = await leaseOf(addresses[0]!);
      const scope = { namespace: story().namespace };
      const free = switches.set({ migration: 'hold' }, scope);
      const migration = await story().migrations.start('vm1');
      await story().migrations.waitCopying(migration);
      const target = await targetOf(wire, source);
      expect((await wire.reportedInterface(target, DATA))?.ips).to.deep.equal(addresses.map(bareAddress));
      if (end === 'fails') {
        switches.set({ migration: 'fail' }, scope);
        free();
        expect(await story().migrations.waitEnded(migration)).to.equal('Failed');
      } else await story().migrations.abort('vm1', migration);

      await waitSandboxGone(wire, target);
      await story().migrations.waitForOneLauncher('vm1');
      expect((await wire.launcher('vm1')).metadata.uid).to.equal(source.metadata.uid);
      await wire.waitForAddresses(source, DATA, addresses);
      await wire.waitReachable(neighbour, addresses);
      expect(await leaseOf(addresses[0]!)).to.deep.equal(lease);
      await isUsedBy(source);

      switches.clear();
      await story().migrate('vm1', 'Succeeded');
      await wire.waitForAddresses(await wire.launcher('vm1'), DATA, addresses);
    });
  }
});
