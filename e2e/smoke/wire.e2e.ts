import { once } from 'node:events';
import { readdir, readFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { expect } from 'chai';
import { until, untilValue } from '../../bed/processes/wait.js';
import { useWireFixture } from '../../bed/network/fixture/use-wire-fixture.js';
import { nodeFolder } from '../../bed/network/open-pod-networks.js';
import type { PodNetworks } from '../../bed/network/pod-networks.js';
import { bridgeNetwork, type WireFixture } from '../../bed/network/fixture/wire-fixture.js';
import { openWire, type Wire } from '../../bed/network/wire.js';
import { capture } from '../../bed/processes/processes.js';

/** The network namespaces of the bed: what they report of packets and guests, and that nothing of them remains. */
describe('The network namespaces of the bed', () => {
  let stage: WireFixture;
  let wire: Wire;
  let networks: PodNetworks;

  useWireFixture((opened) => {
    stage = opened;
    ({ wire, networks } = opened);
  });

  it('report who claims an address and what neighbours learn', async () => {
    await stage.createNetwork('blue', bridgeNetwork('br1', { type: 'static' }));
    const { location } = await networks.attach(
      await stage.createPod('node-1', [{ name: 'blue', ips: ['192.168.10.1/24'] }]),
    );
    await wire.addHost('witness', 'br1', ['192.168.10.100/24', 'fd00:10::100/64']);
    const watch = await wire.watch('host/witness', 'eth0');
    expect(await wire.ping('host/witness', '192.168.10.1')).to.include({ received: 5 });
    const { mac } = (await wire.interfaces(location)).find(({ name }) => name === 'net1')!;
    await until('the neighbour to be known', () => {
      return watch.events.some(({ neighbour }) => neighbour?.ip === '192.168.10.1' && neighbour.mac === mac);
    });
    await wire.announce(location, 'net1', '192.168.10.1', '02:00:00:00:00:66');
    await wire.announce(location, 'net1', 'fd00:10::1');
    const claims = await untilValue(
      'the announcements to be seen',
      () => watch.events.flatMap(({ frame }) => (frame?.gratuitous ? [frame] : [])),
      (frames) => ['192.168.10.1', 'fd00:10::1'].every((ip) => frames.some((frame) => frame.ip === ip)),
    );
    expect(claims.find(({ ip }) => ip === '192.168.10.1')?.mac).to.equal('02:00:00:00:00:66');
    expect(claims.find(({ ip }) => ip === 'fd00:10::1')?.mac).to.equal(mac);
    await until('the neighbour table to follow', () => {
      return watch.events.some(({ neighbour }) => neighbour?.mac === '02:00:00:00:00:66');
    });
    await watch.stop();
    await wire.removeHost('witness');
  });

  it('let a guest take over an address, and detect duplicate IPv6 addresses', async () => {
    await stage.createNetwork('defended', bridgeNetwork('br1', { type: 'static' }, { enabledad: true }));
    const { location } = await networks.attach(
      await stage.createPod('node-1', [{ name: 'defended', ips: ['192.168.10.1/24'] }]),
    );
    await wire.flushAddresses(location, 'net1');
    await wire.setMac(location, 'net1', '02:00:00:00:00:07');
    await wire.addAddress(location, 'net1', 'fd00:10::100/64');
    await wire.addHost('holder', 'br1', ['fd00:10::7/64']);
    await wire.addAddress(location, 'net1', 'fd00:10::7/64');
    const { mac, addresses } = await untilValue(
      'duplicate address detection to end',
      async () => (await wire.interfaces(location)).find(({ name }) => name === 'net1')!,
      (net1) => net1.addresses.every(({ tentative, dadFailed }) => dadFailed || !tentative),
    );
    expect(mac).to.equal('02:00:00:00:00:07');
    const failed = Object.fromEntries(addresses.map(({ address, dadFailed }) => [address, dadFailed]));
    expect(failed).to.include({ 'fd00:10::100/64': false, 'fd00:10::7/64': true });
    await wire.removeHost('holder');
  });

  it('measure how long an address does not answer', async () => {
    await wire.join('node-1', 'br1');
    await wire.addHost('source', 'br1', ['192.168.10.100/24']);
    await wire.addHost('target', 'br1', ['192.168.10.101/24']);
    const pings = await wire.startPing('host/source', '192.168.10.101', { intervalMs: 5, timeoutMs: 200 });
    await until('the address to be there', async () => {
      return (await wire.ping('host/source', '192.168.10.101', { count: 1 })).received === 1;
    });
    await wire.flushAddresses('host/target', 'eth0');
    expect(await wire.ping('host/source', '192.168.10.101', { count: 2, timeoutMs: 50 })).to.include({ received: 0 });
    await wire.addAddress('host/target', 'eth0', '192.168.10.101/24');
    await until('the address to be back', async () => {
      return (await wire.ping('host/source', '192.168.10.101', { count: 1 })).received === 1;
    });
    const { sent, received, lost, lossRuns, rttMs } = await pings.stop();
    expect(received + lost).to.equal(sent);
    expect(lossRuns).to.have.length(1);
    expect(rttMs?.p50).to.be.below(100);
    await wire.removeHost('source');
    await wire.removeHost('target');
  });

  it('show the folders of a node only to plugins on that node', async () => {
    const agent = createServer((socket) => socket.end('the agent of node-2'));
    agent.listen(join(nodeFolder(stage.plane, 'node-2'), 'run-holdfast', 'agent.sock'));
    await once(agent, 'listening');
    const script = `
      const socket = require('node:net').connect('/run/holdfast/agent.sock');
      socket.on('error', ({ code }) => console.log(code)).on('data', (data) => console.log(String(data)));`;
    const ask = { command: process.execPath, args: ['-e', script] };
    expect((await wire.run('node/node-2', ask)).stdout).to.equal('the agent of node-2\n');
    expect((await wire.run('node/node-1', ask)).stdout).to.equal('ENOENT\n');
    agent.close();
    const mounts = await readFile('/proc/self/mountinfo', 'utf8');
    expect(mounts).not.to.include(stage.plane.dataDir);
  });

  it('exist beside those of another bed, and end with their process even after SIGKILL', async () => {
    const other = await openWire(stage.plane.processes, () => undefined);
    const dir = join(stage.plane.dataDir, 'other');
    await other!.addNode({ name: 'node-1', dir, apiPort: Number(new URL(stage.plane.server).port) });
    await other!.join('node-1', 'br1');
    const netns = await other!.addPod('node-1', 'pod');
    const namespace = await other!.run('node/node-1', { command: '/bin/readlink', args: ['/proc/self/ns/net'] });
    const before = await wire.inventory();
    expect(await namespaces()).to.include(namespace.stdout.trim());
    const pinging = other!.startPing('node/node-1', '127.0.0.1');
    await pinging;
    await other!.child.kill();
    expect(await (await pinging).ended.catch((error: unknown) => String(error))).to.match(/netbed has ended/);
    expect(await namespaces()).not.to.include(namespace.stdout.trim());
    expect(await readdir(netns).catch((error: unknown) => (error as NodeJS.ErrnoException).code)).to.equal('ENOENT');
    expect(await wire.inventory()).to.deep.equal(before);
    expect(await readFile('/proc/self/mountinfo', 'utf8')).not.to.include(dir);
  });
});

/** All network namespaces with a process, from /proc. */
async function namespaces(): Promise<string[]> {
  return (await capture('/bin/sh', ['-c', 'readlink /proc/[0-9]*/fd/* /proc/[0-9]*/ns/net || true'])).split('\n');
}
