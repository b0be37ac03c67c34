import { expect } from 'chai';
import { bareAddress } from '../../test/bare-address.js';
import { podInterfaceName } from '../../api/pod.js';
import { PODS } from '../../kube/resources.js';
import { describeStory } from '../../bed/story/describe.js';
import { until } from '../../bed/processes/wait.js';
import { itWithWireStory, waitSandboxGone } from '../../bed/story/wire/wire-story.js';

const DATA = podInterfaceName('data');

describeStory('A VM with real networks', (story) => {
  itWithWireStory('has exactly the addresses of its claim, and pods of both nodes reach it', story, async (wire) => {
    await story().addresses.createNetwork('blue', ['10.70.0.0/24', 'fd00:70::/64']);
    await story().runVm('vm1', { data: 'blue' });
    const addresses = await story().addresses.waitForIPs('vm1.data');
    expect(addresses).to.have.length(2);
    const launcher = await wire.launcher('vm1');
    await wire.waitForAddresses(launcher, DATA, addresses);
    for (const node of wire.context.bed.nodes) {
      const neighbour = await wire.createNeighbour('blue', node, `neighbour-${node}`);
      await wire.waitReachable(neighbour, addresses);
    }
    const { containerId } = wire.context.wire.sandboxOf(launcher);
    const leases = [...(await story().addresses.leases()).values()];
    const ofSandbox = leases.filter(({ spec }) => spec.containerID === containerId);
    expect(ofSandbox, 'leases of the launcher, which has none of its own').to.deep.equal([]);
  });

  itWithWireStory(
    'keeps its addresses through stop and start on another node, and through a restart',
    story,
    async (wire) => {
      await story().addresses.createNetwork('blue', ['10.70.1.0/24']);
      await story().runVm('vm1', { data: 'blue' });
      const addresses = await story().addresses.waitForIPs('vm1.data');
      const before = await wire.launcher('vm1');
      const neighbour = await wire.createNeighbour('blue');
      await wire.waitForAddresses(before, DATA, addresses);
      await wire.waitReachable(neighbour, addresses);

      await story().stop('vm1');
      await waitSandboxGone(wire, before);
      expect(await wire.isSilent(neighbour, addresses[0]!)).to.equal(true);
      await wire.withNodeCordoned(before.spec!.nodeName!, () => story().start('vm1'));
      const after = await wire.launcher('vm1');
      expect(after.spec?.nodeName).not.to.equal(before.spec?.nodeName);
      await wire.waitForAddresses(after, DATA, addresses);
      await wire.announceGuest(after, DATA);
      await wire.waitReachable(neighbour, addresses);

      await story().restart('vm1');
      const last = await wire.launcher('vm1');
      await wire.waitForAddresses(last, DATA, addresses);
      await wire.announceGuest(last, DATA);
      await wire.waitReachable(neighbour, addresses);
    },
  );

  itWithWireStory(
    'keeps its addresses if the DEL of its old sandbox comes after its new start',
    story,
    async (wire) => {
      await story().addresses.createNetwork('blue', ['10.70.2.0/24']);
      await story().runVm('vm1', { data: 'blue' });
      const addresses = await story().addresses.waitForIPs('vm1.data');
      const before = await wire.launcher('vm1');
      const old = wire.context.wire.sandboxOf(before);
      const neighbour = await wire.createNeighbour('blue');
      const letGo = wire.context.bed.switches.set({ delayNetworkEnd: true }, story().ref('vm1'));

      const stopped = story().stop('vm1');
      await story().waitBeingDeleted('vm1');
      await forget(before.metadata.name);
      await stopped;
      await wire.silence(old.location, DATA); // the guest is down
      await wire.withNodeCordoned(old.node, () => story().start('vm1'));
      const after = await wire.launcher('vm1');
      await wire.waitForAddresses(after, DATA, addresses);
      const lease = await leaseOf(addresses[0]!);
      expect(wire.context.wire.sandboxOf(before).containerId).to.equal(old.containerId);

      letGo();
      await waitSandboxGone(wire, before);
      expect(await leaseOf(addresses[0]!)).to.deep.equal(lease);
      await wire.waitForAddresses(after, DATA, addresses);
      await wire.waitReachable(neighbour, addresses);
    },
  );

  itWithWireStory(
    'keeps its addresses if its node is lost and comes back after it runs elsewhere',
    story,
    async (wire) => {
      const { switches } = wire.context.bed;
      await story().addresses.createNetwork('blue', ['10.70.3.0/24']);
      const first = await story().runVm('vm1', { data: 'blue' });
      const addresses = await story().addresses.waitForIPs('vm1.data');
      const before = await wire.launcher('vm1');
      const old = wire.context.wire.sandboxOf(before);
      const neighbour = await wire.createNeighbour('blue', wire.otherNode(old.node));
      switches.loseNode(old.node);
      await wire.silence(old.location, DATA);
      await wire.withNodeCordoned(old.node, async () => {
        await forget(before.metadata.name);
        await story().waitReplaced('vm1', first);
      });
      const after = await wire.launcher('vm1');
      expect(after.spec?.nodeName).not.to.equal(old.node);
      await wire.waitForAddresses(after, DATA, addresses);
      await wire.waitReachable(neighbour, addresses);
      const lease = await leaseOf(addresses[0]!);

      switches.recoverNode(old.node);
      await waitSandboxGone(wire, before);
      expect(await leaseOf(addresses[0]!)).to.deep.equal(lease);
      await wire.waitReachable(neighbour, addresses);
    },
  );

  for (const way of ['replaceSandbox', 'loseSandbox'] as const) {
    const how = way === 'replaceSandbox' ? 'beside the old one' : 'after the old one was lost';
    itWithWireStory(
      `keeps its addresses if its sandbox is replaced ${how} and the DEL comes late`,
      story,
      async (wire) => {
        await story().addresses.createNetwork('blue', ['10.70.4.0/24']);
        await story().runVm('vm1', { data: 'blue' });
        const addresses = await story().addresses.waitForIPs('vm1.data');
        const launcher = await wire.launcher('vm1');
        const old = wire.context.wire.sandboxOf(launcher);
        const neighbour = await wire.createNeighbour('blue');
        const lease = await leaseOf(addresses[0]!);
        const end = await wire.context.wire[way](launcher);
        await until('another sandbox', () => {
          const { uid = '' } = launcher.metadata;
          return (wire.context.wire.networks.find(uid)?.containerId ?? old.containerId) !== old.containerId;
        });
        await wire.waitForAddresses(launcher, DATA, addresses);
        await end();
        await wire.waitForAddresses(launcher, DATA, addresses);
        await wire.waitReachable(neighbour, addresses);
        expect(await leaseOf(addresses[0]!)).to.deep.equal(lease);
      },
    );
  }

  /** Deletes the object of a pod at once, as `kubectl delete --force` does. */
  async function forget(pod: string): Promise<void> {
    await story().client.delete(PODS, story().ref(pod), { gracePeriodSeconds: 0 });
  }

  /** The stored lease, to compare it with a later one. */
  async function leaseOf(address: string): Promise<object | undefined> {
    return (await story().addresses.leases()).get(bareAddress(address));
  }
});
