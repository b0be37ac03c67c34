import { readdir } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { expect } from 'chai';
import { CniError } from '../../bed/network/multus.js';
import { useWireFixture } from '../../bed/network/fixture/use-wire-fixture.js';
import { nodeFolder } from '../../bed/network/open-pod-networks.js';
import type { PodNetworks } from '../../bed/network/pod-networks.js';
import { bridgeNetwork, FIXTURE_NAMESPACE, type WireFixture } from '../../bed/network/fixture/wire-fixture.js';
import type { Wire } from '../../bed/network/wire.js';

/** Multus and the CNI plugins with real pod networks, without KubeVirt and Holdfast. */
describe('The networks of pods on the bed', () => {
  let stage: WireFixture;
  let wire: Wire;
  let networks: PodNetworks;

  useWireFixture((opened) => {
    stage = opened;
    ({ wire, networks } = opened);
  });

  it('carry packets of both families between pods of two nodes, with correct network-status', async () => {
    await stage.createNetwork('blue', bridgeNetwork('br1', { type: 'static' }));
    const one = await stage.createPod('node-1', [{ name: 'blue', ips: ['192.168.10.1/24', 'fd00:10::1/64'] }]);
    const two = await stage.createPod('node-2', [{ name: 'blue', ips: ['192.168.10.2/24', 'fd00:10::2/64'] }]);
    const first = await timed('first ADD', () => networks.attach(one));
    const second = await timed('ADD', () => networks.attach(two));
    expect(first.result.ips?.[0]?.address).to.match(/^10\.244\.1\./);
    expect(second.result.ips?.[0]?.address).to.match(/^10\.244\.2\./);
    const [, net1] = await stage.networkStatusOf(two);
    expect(net1).to.include({ name: `${FIXTURE_NAMESPACE}/blue`, interface: 'net1' });
    expect(net1?.ips).to.deep.equal(['192.168.10.2', 'fd00:10::2']);
    for (const target of ['192.168.10.2', 'fd00:10::2']) {
      expect(await wire.ping(first.location, target)).to.include({ sent: 5, received: 5, lost: 0, duplicates: 0 });
    }
    const nobody = await wire.ping(first.location, '192.168.10.99', { count: 2, timeoutMs: 100 });
    expect(nobody).to.deep.include({ received: 0, lossRuns: [{ atMs: 0, count: 2 }] });
    await networks.check(one);
  });

  it('leave the log files of each call in the folder of the bed', async () => {
    await networks.attach(await stage.createPod('node-1', []));
    const files = await readdir(stage.plane.logDir);
    expect(files.filter((name) => /^multus\..*\.log\.INFO\./.test(name))).to.not.deep.equal([]);
  });

  it('are attached once if attach is repeated', async () => {
    const pod = await stage.createPod('node-1', []);
    const [one, two] = await Promise.all([networks.attach(pod), networks.attach(pod)]);
    expect(two).to.equal(one);
    expect((await wire.interfaces(one.location)).map(({ name }) => name)).to.deep.equal(['eth0']);
  });

  it('are separate on different bridges', async () => {
    await stage.createNetwork('left', bridgeNetwork('left', { type: 'static' }));
    await stage.createNetwork('right', bridgeNetwork('right', { type: 'static' }));
    const one = await networks.attach(await stage.createPod('node-1', [{ name: 'left', ips: ['192.168.11.1/24'] }]));
    await networks.attach(await stage.createPod('node-2', [{ name: 'right', ips: ['192.168.11.2/24'] }]));
    const result = await wire.ping(one.location, '192.168.11.2', { count: 2, timeoutMs: 200 });
    expect(result.received).to.equal(0);
  });

  it('can be plugged into a running pod and unplugged', async () => {
    await stage.createNetwork('blue', bridgeNetwork('br1', { type: 'static' }));
    await stage.createNetwork('green', bridgeNetwork('br2', { type: 'static' }));
    const blue = { name: 'blue', interface: 'podblue', ips: ['192.168.10.1/24'] };
    const green = { name: 'green', interface: 'podgreen', ips: ['192.168.13.1/24'] };
    const pod = await stage.createPod('node-1', [blue]);
    const { location } = await networks.attach(pod);
    await wire.join('node-1', 'br2');
    await wire.addHost('green-host', 'br2', ['192.168.13.100/24']);
    const added = await timed('hotplug', async () => networks.hotplug(await stage.select(pod, [blue, green])));
    expect(added).to.deep.equal({ attached: ['podgreen'], detached: [] });
    expect((await stage.networkStatusOf(pod)).map((entry) => entry.interface)).to.deep.equal([
      'eth0',
      'podblue',
      'podgreen',
    ]);
    expect(await wire.ping(location, '192.168.13.100')).to.include({ received: 5 });
    const removed = await timed('unplug', async () => networks.hotplug(await stage.select(pod, [green])));
    expect(removed).to.deep.equal({ attached: [], detached: ['podblue'] });
    expect((await stage.networkStatusOf(pod)).map((entry) => entry.interface)).to.deep.equal(['eth0', 'podgreen']);
    expect((await wire.interfaces(location)).map(({ name }) => name)).to.have.members(['eth0', 'podgreen']);
    expect(await networks.hotplug(await stage.select(pod, [green]))).to.deep.equal({ attached: [], detached: [] });
    await wire.removeHost('green-host');
  });

  it('are plugged in except for a missing one, which the error names', async () => {
    await stage.createNetwork('blue', bridgeNetwork('br1', { type: 'static' }));
    const blue = { name: 'blue', interface: 'podblue', ips: ['192.168.10.1/24'] };
    const refused = await stage.createPod('node-1', [{ name: 'nowhere' }]);
    const failure = await networks.attach(refused).catch((error: unknown) => error);
    expect(failure).to.be.instanceOf(CniError);
    expect(String(failure)).to.match(/cannot find a network-attachment-definition \(nowhere\) in namespace \(wire\)/);
    expect(networks.find(refused.metadata.uid!)).to.equal(undefined);
    const living = await stage.createPod('node-1', []);
    const { location } = await networks.attach(living);
    const wanted = await stage.select(living, [blue, { name: 'nowhere', interface: 'podnowhere' }]);
    const complaint = await networks.hotplug(wanted).catch((error: unknown) => error);
    expect(String(complaint)).to.include('nowhere');
    expect((await wire.interfaces(location)).map(({ name }) => name)).to.have.members(['eth0', 'podblue']);
  });

  it('are removed completely with a pod', async () => {
    await stage.createNetwork('leased', bridgeNetwork('br3', hostLocal('192.168.14.0/24')));
    await stage.createNetwork('blue', bridgeNetwork('br1', { type: 'static' }));
    await wire.join('node-1', 'br1');
    await wire.join('node-1', 'br3');
    await networks.attach(await stage.createPod('node-1', [])); // creates cni0, which stays
    const before = await leftovers('node-1');
    const pod = await stage.createPod('node-1', [{ name: 'leased', interface: 'leased0' }]);
    await networks.attach(pod);
    const blue = { name: 'blue', interface: 'podblue', ips: ['192.168.10.1/24'] };
    await networks.hotplug(await stage.select(pod, [{ name: 'leased', interface: 'leased0' }, blue]));
    const during = await leftovers('node-1');
    expect(during.interfaces).to.have.length(before.interfaces.length + 3);
    expect(during.files).to.include('networks/leased/192.168.14.2');
    await timed('DEL', () => networks.detach(pod));
    await networks.detach(pod);
    expect(await leftovers('node-1')).to.deep.equal(before);
  });

  it('have separate host-local records on each node', async () => {
    await stage.createNetwork('twice', bridgeNetwork('br4', hostLocal('192.168.15.0/24')));
    const one = await stage.createPod('node-1', [{ name: 'twice' }]);
    const two = await stage.createPod('node-2', [{ name: 'twice' }]);
    await networks.attach(one);
    await networks.attach(two);
    const addresses = [await stage.networkStatusOf(one), await stage.networkStatusOf(two)].map(
      ([, net1]) => net1?.ips?.[0],
    );
    expect(addresses[0]).to.equal(addresses[1]);
  });

  it('can be attached to many pods at once', async () => {
    await stage.createNetwork('crowd', bridgeNetwork('br5', hostLocal('192.168.16.0/24')));
    const nodes = Array.from({ length: 24 }, (_, index) => `node-${(index % 2) + 1}`);
    const pods = await Promise.all(nodes.map((node) => stage.createPod(node, [{ name: 'crowd' }])));
    const attached = await timed('24 ADDs at once', () => Promise.all(pods.map((pod) => networks.attach(pod))));
    expect(new Set(attached.map(({ result }) => result.ips?.[0]?.address))).to.have.length(24);
    await timed('24 DELs at once', () => Promise.all(pods.map((pod) => networks.detach(pod))));
    expect(networks.all().size).to.equal(0);
  });

  it('work again after Multus could not reach the API server', async () => {
    const pod = await stage.createPod('node-1', []);
    await stage.plane.apiServer.kill();
    const failure = await networks.attach(pod).catch((error: unknown) => error);
    expect(failure).to.be.instanceOf(Error);
    await stage.plane.apiServer.start();
    expect((await networks.attach(pod)).node).to.equal('node-1');
  });

  /** The interfaces of a pod on its node, outside of its namespace. */
  async function leftovers(node: string): Promise<{ interfaces: readonly string[]; files: string[] }> {
    const contents = await wire.inventory();
    const folder = join(nodeFolder(stage.plane, node), 'var-lib-cni');
    const found = await readdir(folder, { recursive: true, withFileTypes: true });
    const ofPods = found.filter((entry) => entry.isFile() && !/last_reserved_ip|lock$/.test(entry.name));
    const files = ofPods.map(({ parentPath, name }) => relative(folder, join(parentPath, name))).sort();
    return { interfaces: contents[`node/${node}`]!.interfaces, files };
  }
});

function hostLocal(subnet: string): object {
  return { type: 'host-local', ranges: [[{ subnet }]] };
}

async function timed<T>(what: string, act: () => Promise<T>): Promise<T> {
  const started = Date.now();
  const result = await act();
  console.log(`      ${what}: ${Date.now() - started} ms`);
  return result;
}
