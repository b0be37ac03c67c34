import { expect } from 'chai';
import { podInterfaceName } from '../api/pod-interface.js';
import { PODS } from '../kube/resources.js';
import { describeStory } from './story/describe.js';
import { until } from './bed/wait.js';
import { bare, itOnTheWire, sandboxGone } from './story/wire-story.js';

const DATA = podInterfaceName('data');

describeStory('A VM on the wire', (story) => {
  itOnTheWire('has exactly the addresses of its claim, and pods of both nodes reach it', story, async (wire) => {
    await story().addresses.network('blue', ['10.70.0.0/24', 'fd00:70::/64']);
    await story().createVm('vm1', { data: 'blue' });
    await story().running('vm1');
    const addresses = await story().addresses.of('vm1.data');
    expect(addresses).to.have.length(2);
    const launcher = await wire.launcher('vm1');
    await wire.has(launcher, DATA, addresses);
    for (const node of wire.on.bed.nodes) {
      const neighbour = await wire.neighbour('blue', node, `neighbour-${node}`);
      await wire.reaches(neighbour, addresses);
    }
    const { containerId } = wire.on.wire.sandbox(launcher);
    const leases = [...(await story().addresses.leases()).values()];
    const ofSandbox = leases.filter(({ spec }) => spec.containerID === containerId);
    expect(ofSandbox, 'leases of the launcher, which has none of its own').to.deep.equal([]);
  });

  itOnTheWire('keeps them through stop and start on another node, and through a restart', story, async (wire) => {
    await story().addresses.network('blue', ['10.70.1.0/24']);
    await story().createVm('vm1', { data: 'blue' });
    await story().running('vm1');
    const addresses = await story().addresses.of('vm1.data');
    const before = await wire.launcher('vm1');
    const neighbour = await wire.neighbour('blue');
    await wire.has(before, DATA, addresses);
    await wire.reaches(neighbour, addresses);

    await story().stop('vm1');
    await sandboxGone(wire, before);
    expect(await wire.isSilent(neighbour, addresses[0]!)).to.equal(true);
    await wire.away(before.spec!.nodeName!, () => story().start('vm1'));
    const after = await wire.launcher('vm1');
    expect(after.spec?.nodeName).not.to.equal(before.spec?.nodeName);
    await wire.has(after, DATA, addresses);
    await wire.boots(after, DATA);
    await wire.reaches(neighbour, addresses);

    await story().restart('vm1');
    const last = await wire.launcher('vm1');
    await wire.has(last, DATA, addresses);
    await wire.boots(last, DATA);
    await wire.reaches(neighbour, addresses);
  });

  itOnTheWire('keeps them when the DEL of its old sandbox comes after its new start', story, async (wire) => {
    await story().addresses.network('blue', ['10.70.2.0/24']);
    await story().createVm('vm1', { data: 'blue' });
    await story().running('vm1');
    const addresses = await story().addresses.of('vm1.data');
    const before = await wire.launcher('vm1');
    const old = wire.on.wire.sandbox(before);
    const neighbour = await wire.neighbour('blue');
    const letGo = wire.on.bed.switches.set({ delayNetworkEnd: true }, story().ref('vm1'));

    const stopped = story().stop('vm1');
    await story().beingDeleted('vm1');
    await forget(before.metadata.name);
    await stopped;
    await wire.fallsSilent(old.place, DATA); // the guest is down
    await wire.away(old.node, () => story().start('vm1'));
    const after = await wire.launcher('vm1');
    await wire.has(after, DATA, addresses);
    const lease = await leaseOf(addresses[0]!);
    expect(wire.on.wire.sandbox(before).containerId).to.equal(old.containerId);

    letGo();
    await sandboxGone(wire, before);
    expect(await leaseOf(addresses[0]!)).to.deep.equal(lease);
    await wire.has(after, DATA, addresses);
    await wire.reaches(neighbour, addresses);
  });

  itOnTheWire('keeps them when its node is lost, and comes back after it runs elsewhere', story, async (wire) => {
    const { switches } = wire.on.bed;
    await story().addresses.network('blue', ['10.70.3.0/24']);
    await story().createVm('vm1', { data: 'blue' });
    const first = await story().running('vm1');
    const addresses = await story().addresses.of('vm1.data');
    const before = await wire.launcher('vm1');
    const old = wire.on.wire.sandbox(before);
    const neighbour = await wire.neighbour('blue', wire.otherNode(old.node));
    switches.loseNode(old.node);
    await wire.fallsSilent(old.place, DATA);
    await wire.away(old.node, async () => {
      await forget(before.metadata.name);
      await story().replaced('vm1', first);
    });
    const after = await wire.launcher('vm1');
    expect(after.spec?.nodeName).not.to.equal(old.node);
    await wire.has(after, DATA, addresses);
    await wire.reaches(neighbour, addresses);
    const lease = await leaseOf(addresses[0]!);

    switches.recoverNode(old.node);
    await sandboxGone(wire, before);
    expect(await leaseOf(addresses[0]!)).to.deep.equal(lease);
    await wire.reaches(neighbour, addresses);
  });

  for (const way of ['replaceSandbox', 'loseSandbox'] as const) {
    const how = way === 'replaceSandbox' ? 'beside the old one' : 'after the old one was lost';
    itOnTheWire(`keeps them when its sandbox is made anew ${how}, whose DEL comes late`, story, async (wire) => {
      await story().addresses.network('blue', ['10.70.4.0/24']);
      await story().createVm('vm1', { data: 'blue' });
      await story().running('vm1');
      const addresses = await story().addresses.of('vm1.data');
      const launcher = await wire.launcher('vm1');
      const old = wire.on.wire.sandbox(launcher);
      const neighbour = await wire.neighbour('blue');
      const lease = await leaseOf(addresses[0]!);
      const end = await wire.on.wire[way](launcher);
      await until('another sandbox', () => {
        const { uid = '' } = launcher.metadata;
        return (wire.on.wire.networks.find(uid)?.containerId ?? old.containerId) !== old.containerId;
      });
      await wire.has(launcher, DATA, addresses);
      await end();
      await wire.has(launcher, DATA, addresses);
      await wire.reaches(neighbour, addresses);
      expect(await leaseOf(addresses[0]!)).to.deep.equal(lease);
    });
  }

  /** As after `kubectl delete --force`: the object goes, whatever its node does. */
  async function forget(pod: string): Promise<void> {
    await story().client.delete(PODS, story().ref(pod), { gracePeriodSeconds: 0 });
  }

  /** As it is stored: nothing has touched it where it is the same again. */
  async function leaseOf(address: string): Promise<object | undefined> {
    return (await story().addresses.leases()).get(bare(address));
  }
});
