import { expect } from 'chai';
import { type Pod, podInterfaceName } from '../../api/pod.js';
import { PODS } from '../../kube/resources.js';
import { describeStory, itOnWire } from '../../bed/story/describe.js';
import type { Story } from '../../bed/story/story.js';
import { until, untilValue } from '../../bed/processes/wait.js';
import { itWithWireStory, type WireStory } from '../../bed/story/wire/wire-story.js';

const ADDRESS = '10.21.0.9/24';

/** Creates a pod `pod` with a static address on `net1`, and waits until it runs. */
async function podOn(story: Story, pods: WireStory): Promise<Pod> {
  const config = { cniVersion: '1.0.0', name: 'static-net', type: 'bridge', bridge: 'br-static' };
  await story.network('fixed', { config: { ...config, ipam: { type: 'static', addresses: [{ address: ADDRESS }] } } });
  await pods.createPod('pod', { networks: [{ name: 'fixed' }] });
  return pods.waitRunning('pod');
}

describeStory('The simulated kubelet with real networks', (story) => {
  itWithWireStory('reports the CNI error of a pod without a sandbox, and starts it later', story, async (pods) => {
    const { wire } = pods.context;
    const network = { cniVersion: '1.0.0', name: 'odd-net' };
    await story().network('odd', { config: { ...network, type: 'no-such-plugin' } });
    const pod = await pods.createPod('pod', { networks: [{ name: 'odd' }] });
    await story().waitForEvent('pod', 'FailedCreatePodSandBox', /failed to find plugin "no-such-plugin"/);
    expect(wire.networks.find(pod.metadata.uid ?? '')).to.equal(undefined);
    await story().network('odd', { config: { ...network, type: 'bridge', bridge: 'br-odd' } });
    await pods.waitRunning('pod');
  });

  itWithWireStory('replaces a sandbox that was stopped, and reports the new address', story, async (pods) => {
    const { wire } = pods.context;
    const pod = await podOn(story(), pods);
    const before = wire.sandboxOf(pod);
    await wire.restartSandbox(pod);
    const after = await until('another sandbox', () => wire.networks.find(pod.metadata.uid ?? ''));
    expect(after.containerId).not.to.equal(before.containerId);
    await pods.waitForAddresses(pod, 'net1', [ADDRESS]);
    const [eth0 = ''] = await wire.addressesOf(pod, 'eth0');
    await untilValue(
      'the pod to report its address',
      () => story().client.get(PODS, story().ref('pod')),
      ({ status }) => (status as { podIP?: string }).podIP === eth0.replace(/\/.*/, ''),
    );
  });

  itWithWireStory('may have two sandboxes of one pod, of which the old one is removed later', story, async (pods) => {
    const { wire } = pods.context;
    const pod = await podOn(story(), pods);
    const old = wire.sandboxOf(pod);
    const endOld = await wire.replaceSandbox(pod);
    await until('another sandbox', () => wire.networks.find(pod.metadata.uid ?? ''));
    expect(Object.keys(await wire.wire.inventory())).to.include.members([old.location, wire.locationOf(pod)]);
    await endOld();
    expect(Object.keys(await wire.wire.inventory()))
      .to.include(wire.locationOf(pod))
      .and.not.to.include(old.location);
    expect(await wire.addressesOf(pod, 'net1')).to.deep.equal([ADDRESS]);
  });

  itWithWireStory('replaces all sandboxes of a node after its reboot', story, async (pods) => {
    const { wire } = pods.context;
    const pod = await podOn(story(), pods);
    const old = wire.sandboxOf(pod);
    const endOld = await wire.reboot([pod]);
    await until('another sandbox', () => wire.networks.find(pod.metadata.uid ?? ''));
    expect(Object.keys(await wire.wire.inventory())).not.to.include(old.location);
    await endOld(); // for a sandbox that is gone, which is no error
    expect(await wire.addressesOf(pod, 'net1')).to.deep.equal([ADDRESS]);
  });

  itWithWireStory('keeps the networks of a pod that was deleted by force until CNI DEL', story, async (pods) => {
    const { bed, wire } = pods.context;
    const pod = await podOn(story(), pods);
    const { location } = wire.sandboxOf(pod);
    const letGo = bed.switches.set({ delayNetworkEnd: true }, story().ref('pod'));
    await story().client.delete(PODS, story().ref('pod'), { gracePeriodSeconds: 0 });
    await untilValue(
      'the pod to be gone',
      () => story().client.find(PODS, story().ref('pod')),
      (found) => found === undefined,
    );
    expect(Object.keys(await wire.wire.inventory())).to.include(location);
    letGo();
    await until('its sandbox to be gone', async () => !Object.keys(await wire.wire.inventory()).includes(location));
  });

  itWithWireStory('attaches no network while networks are held', story, async (pods) => {
    const { bed, wire } = pods.context;
    const letGo = bed.switches.set({ holdNetworks: true }, story().ref('pod'));
    const config = { cniVersion: '1.0.0', name: 'their-net', type: 'ovn-k8s-cni-overlay' };
    await story().network('theirs', { config });
    const pod = await pods.createPod('pod', { networks: [{ name: 'theirs' }] });
    const isBound = async () => (await story().client.get(PODS, story().ref('pod'))).spec?.nodeName;
    await until('the pod to be bound', isBound);
    expect(wire.networks.find(pod.metadata.uid ?? '')).to.equal(undefined);
    letGo();
    await pods.waitRunning('pod');
    // the stub of another plugin attaches an interface without an address
    expect((await wire.interfaceOf(pod, 'net1'))?.addresses.filter(({ linkLocal }) => !linkLocal)).to.deep.equal([]);
  });

  itOnWire('connects the addresses of a migrating guest to only one launcher at a time', async ({ bed, wire }) => {
    const data = podInterfaceName('data');
    await story().addresses.createNetwork('blue', ['10.21.1.0/24', 'fd00:21::/64']);
    await story().runVm('vm1', { data: 'blue' });
    const addresses = await story().addresses.waitForIPs('vm1.data');
    const [source] = await story().launchers('vm1');
    const letGo = bed.switches.set({ migration: 'hold' }, { namespace: story().namespace });
    const migration = await story().migrations.start('vm1');
    await story().migrations.waitCopying(migration);
    const target = (await story().launchers('vm1')).find(({ metadata }) => metadata.uid !== source?.metadata.uid);
    expect(await wire.addressesOf(target!, data)).to.deep.equal([]);
    expect(await wire.addressesOf(source!, data)).to.have.members(addresses);
    letGo();
    expect(await story().migrations.waitEnded(migration)).to.equal('Succeeded');
    expect(await wire.addressesOf(target!, data)).to.have.members(addresses);
  });

  itOnWire('can be bypassed by a direct call of a plugin', async ({ bed, wire }) => {
    const config = { cniVersion: '1.0.0', name: 'any', type: 'bridge', ipam: { type: 'holdfast' } };
    const { exitCode, answer } = await wire.callPlugin(bed.nodes[0] ?? '', { verb: 'VERSION', config });
    expect(exitCode).to.equal(0);
    expect(answer).to.deep.include({ supportedVersions: ['0.3.0', '0.3.1', '0.4.0', '1.0.0', '1.1.0'] });
  });
});
