import { expect } from 'chai';
import { bareAddress } from '../../test/bare-address.js';
import { podInterfaceName } from '../../api/pod.js';
import { describeStory } from '../../bed/story/describe.js';
import { bridgeOf } from '../../bed/story/networks.js';
import { ClaimLeaseObserver } from '../../bed/story/claim-lease-observer.js';
import { until } from '../../bed/processes/wait.js';
import { itWithWireStory, waitSandboxGone } from '../../bed/story/wire/wire-story.js';

const DATA = podInterfaceName('data');
const COOLDOWN_MS = 3_000;

describeStory('Pods and VMs on one network', (story) => {
  itWithWireStory(
    'never share an address, and a pod in a full pool gets an error, and an address after a cool-down',
    story,
    async (wire) => {
      const cooldown = { cooldownSeconds: COOLDOWN_MS / 1_000 };
      const space = await story().addresses.createNetwork('blue', ['10.73.0.0/29'], cooldown);
      const observer = new ClaimLeaseObserver(story().client, {
        space,
        cooldownMs: COOLDOWN_MS,
        namespace: story().namespace,
      });
      observer.start();
      try {
        const names = ['pod-1', 'pod-2', 'pod-3', 'pod-4'];
        const pods = names.map((name, index) => {
          return wire.createPod(name, { networks: [{ name: 'blue' }], node: wire.context.bed.nodes[index % 2]! });
        });
        const vms = ['vm1', 'vm2'].map((name) => story().createVm(name, { data: 'blue' }));
        await Promise.all([...pods, ...vms]);
        const ofPods = await Promise.all(names.map(async (name) => wire.addressOf(await wire.waitRunning(name))));
        const ofVms: string[] = [];
        for (const name of ['vm1', 'vm2']) {
          await story().waitRunning(name);
          const addresses = await story().addresses.waitForIPs(`${name}.data`);
          await wire.waitForAddresses(await wire.launcher(name), DATA, addresses);
          ofVms.push(...addresses);
        }
        const all = [1, 2, 3, 4, 5, 6].map((last) => `10.73.0.${last}/29`);
        expect([...ofPods, ...ofVms].sort()).to.deep.equal(all);

        await wire.createPod('late', { networks: [{ name: 'blue' }] });
        expect(await wire.waitForSandboxFailure('late', /is full/))
          .to.include('6 of 6')
          .and.to.match(/the kubelet retries until/);
        expect(await story().addresses.heldAddresses()).to.deep.equal(all.map(bareAddress));
        await wire.deletePod('pod-3');
        const late = await wire.waitRunning('late');
        expect(await wire.addressOf(late)).to.equal(ofPods[2]);
        await until('the release to be seen', () => observer.releases >= 1);
      } finally {
        await observer.stop();
      }
      expect(observer.violations).to.deep.equal([]);
    },
  );

  itWithWireStory('reach each other, and their addresses are freed when they are deleted', story, async (wire) => {
    await story().addresses.createNetwork('blue', ['10.73.1.0/24', 'fd00:73::/64']);
    const one = await wire.createNeighbour('blue', 'node-1', 'one');
    const two = await wire.createNeighbour('blue', 'node-2', 'two');
    const addresses = await wire.context.wire.addressesOf(two, 'net1');
    expect(addresses).to.have.length(2);
    await wire.waitReachable(one, addresses);
    expect((await story().addresses.leases()).get(bareAddress(addresses[0]!))?.spec).to.deep.include({
      owner: { kind: 'Pod', namespace: story().namespace, name: 'two', uid: two.metadata.uid },
      node: 'node-2',
      containerID: wire.context.wire.sandboxOf(two).containerId,
      interface: 'net1',
    });
    await wire.deletePod('two');
    await story().addresses.waitHeld((await wire.context.wire.addressesOf(one, 'net1')).map(bareAddress));
  });
});

describeStory('A pod without a claim', (story) => {
  for (const way of ['replaceSandbox', 'loseSandbox'] as const) {
    const how = way === 'replaceSandbox' ? 'beside the old one' : 'after the old one was lost';
    itWithWireStory(
      `keeps its address if its sandbox is replaced ${how}, and the DEL of the old one frees nothing`,
      story,
      async (wire) => {
        await story().addresses.createNetwork('blue', ['10.73.2.0/24']);
        const pod = await wire.createNeighbour('blue', 'node-1', 'pod-1');
        const other = await wire.createNeighbour('blue', 'node-2', 'pod-2');
        const [mine, others] = [await wire.addressOf(pod), await wire.addressOf(other)];
        const old = wire.context.wire.sandboxOf(pod);
        const end = await wire.context.wire[way](pod);
        const fresh = await until('another sandbox', () => {
          const found = wire.context.wire.networks.find(pod.metadata.uid ?? '');
          return found?.containerId === old.containerId ? undefined : found;
        });
        await wire.waitForAddresses(pod, 'net1', [mine]);
        await end();
        await story().addresses.waitHeld([mine, others].map(bareAddress));
        const lease = (await story().addresses.leases()).get(bareAddress(mine));
        expect(lease?.spec.containerID).to.equal(fresh.containerId);
        await wire.waitReachable(other, [mine]);
        await wire.deletePod('pod-1');
        await waitSandboxGone(wire, pod);
        await story().addresses.waitHeld([bareAddress(others)]);
      },
    );
  }

  itWithWireStory(
    'has its own address on each interface, and a DEL of one interface frees no other address',
    story,
    async (wire) => {
      const network = await story().addresses.createNetwork('blue', ['10.73.3.0/24']);
      await wire.createPod('pod-1', { networks: [{ name: 'blue' }, { name: 'blue' }] });
      const pod = await wire.waitRunning('pod-1');
      const [first, second] = [await wire.addressOf(pod, 'net1'), await wire.addressOf(pod, 'net2')];
      expect(first).not.to.equal(second);
      const { node } = wire.context.wire.sandboxOf(pod);
      const config = { cniVersion: '1.0.0', name: network, type: 'bridge', ipam: { type: 'holdfast' } };
      const call = { verb: 'DEL', config, pod, interfaceName: 'net2' } as const;
      expect(await wire.context.wire.callPlugin(node, call)).to.deep.equal({ exitCode: 0, answer: undefined });
      await story().addresses.waitHeld([bareAddress(first)]);
    },
  );

  itWithWireStory('gets the address that it requests, or an error with the reason', story, async (wire) => {
    const network = `${story().namespace}-blue`;
    const subnets = [{ cidr: '10.73.4.0/24', gateway: '10.73.4.1' }];
    const plugin = { type: 'bridge', bridge: bridgeOf(network), capabilities: { ips: true } };
    const config = { cniVersion: '1.0.0', name: network, ...plugin, ipam: { type: 'holdfast', subnets } };
    await story().network('blue', { config });
    await story().addresses.waitForDerivedPool(network);
    const ask = async (name: string, address: string) => {
      await wire.createPod(name, { networks: [{ name: 'blue', ips: [address] }] });
    };
    await ask('pod-1', '10.73.4.77/24');
    expect(await wire.addressOf(await wire.waitRunning('pod-1'))).to.equal('10.73.4.77/24');
    await ask('second', '10.73.4.77/24');
    expect(await wire.waitForSandboxFailure('second', /10\.73\.4\.77 is allocated to/)).to.include(
      `${story().namespace}/pod-1`,
    );
    await ask('outside', '10.99.0.1/24');
    await wire.waitForSandboxFailure('outside', /10\.99\.0\.1 is not in pool/);
    await ask('gateway', '10.73.4.1/24');
    await wire.waitForSandboxFailure('gateway', /10\.73\.4\.1 is .*gateway/);
    expect(await story().addresses.heldAddresses()).to.deep.equal(['10.73.4.77']);
    await wire.deletePod('pod-1');
    expect(await wire.addressOf(await wire.waitRunning('second'))).to.equal('10.73.4.77/24');
  });
});
