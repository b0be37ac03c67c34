import { expect } from 'chai';
import { useWireFixture } from '../../bed/network/fixture/use-wire-fixture.js';
import type { AttachedPod } from '../../bed/network/pod-networks.js';
import { bridgeNetwork, type WireFixture } from '../../bed/network/fixture/wire-fixture.js';
import type { RunningCommand, Wire } from '../../bed/network/wire.js';
import { until, untilValue } from '../../bed/processes/wait.js';

const GUEST = { guest: 'vm1', name: 'eth0', mac: '02:00:00:00:00:07' } as const;
const LOCATION = 'guest/vm1';
const ADDRESSES = ['192.168.20.7/24', 'fd00:20::7/64'] as const;
const CLIENT = 'host/client';

/** Guests of the bed: VMs with a kernel of their own behind their launchers. */
describe('The guests of the bed', () => {
  let stage: WireFixture;
  let wire: Wire;

  useWireFixture((opened) => {
    stage = opened;
    ({ wire } = opened);
  });

  beforeEach(async () => {
    await stage.createNetwork('flat', bridgeNetwork('br2', {}, { disableContainerInterface: true }));
    await wire.addHost('client', 'br2', ['192.168.20.100/24', 'fd00:20::100/64']);
    await wire.addGuest(GUEST.guest);
  });

  afterEach(async () => {
    await wire.removeGuest(GUEST.guest);
    await wire.removeHost('client');
  });

  async function launcherOn(node: string): Promise<AttachedPod> {
    return stage.networks.attach(await stage.createPod(node, [{ name: 'flat', interface: 'podnet' }]));
  }

  async function plug({ containerId: pod }: AttachedPod): Promise<void> {
    await wire.prepareLauncher(pod, 'podnet');
    await wire.plugGuest({ ...GUEST, pod, interface: 'podnet' });
  }

  /** Starts a guest on node-1. */
  async function startGuest(): Promise<AttachedPod> {
    const launcher = await launcherOn('node-1');
    await plug(launcher);
    await wire.run(LOCATION, { command: '/sbin/ip', args: ['link', 'set', 'eth0', 'up'] });
    for (const address of ADDRESSES) await wire.addAddress(LOCATION, 'eth0', address, true);
    return launcher;
  }

  it('reach a network behind a launcher that has no address on it', async () => {
    const { location } = await startGuest();
    for (const target of ['192.168.20.7', 'fd00:20::7']) {
      expect(await wire.ping(CLIENT, target), target).to.include({ received: 5 });
    }
    const podnet = (await wire.interfaces(location)).find(({ name }) => name === 'podnet');
    expect(podnet).to.include({ up: true });
    expect(podnet?.addresses.filter(({ linkLocal }) => !linkLocal)).to.be.empty;
    expect(podnet?.mac).not.to.equal(GUEST.mac);
    const [eth0] = await wire.interfaces(LOCATION);
    expect(eth0).to.include({ name: 'eth0', mac: GUEST.mac });
  });

  it('keep their addresses and a TCP connection when they migrate to a launcher on another node', async () => {
    await startGuest();
    const echo = `require('net').createServer((socket) => socket.pipe(socket)).listen(7007, () => console.log('listens'))`;
    const server = await wire.start(LOCATION, node(echo));
    await untilOutput(server, 'listens');
    const client = await wire.start(CLIENT, node(CONVERSATION));
    await untilOutput(client, 'answer 3\n');
    const target = await launcherOn('node-2');
    const watch = await wire.watch(CLIENT, 'eth0');
    await plug(target);
    const { length } = client.output.stdout.split('\n');
    await until('answers through the new launcher', () => client.output.stdout.split('\n').length > length + 5);
    expect(client.output.stderr).to.equal('');
    const announced = () => watch.events.flatMap(({ frame }) => (frame?.gratuitous ? [frame.ip] : []));
    await until('both addresses to be announced', () => {
      return ADDRESSES.every((address) => announced().includes(address.replace(/\/.*/, '')));
    });
    await Promise.all([watch.stop(), client.stop(), server.stop()]);
  });

  it('lose an interface that is unplugged', async () => {
    await startGuest();
    await wire.unplugGuest(GUEST.guest, 'eth0');
    expect(await wire.interfaces(LOCATION)).to.be.empty;
    await wire.unplugGuest(GUEST.guest, 'eth0');
    expect(await wire.ping(CLIENT, '192.168.20.7', { count: 1, timeoutMs: 50 })).to.include({ received: 0 });
  });

  it('run programs that take signals, have folders of their own, and end with the guest', async () => {
    const script = `
      trap 'echo renewed' USR1
      trap 'echo ended; exit 3' TERM
      echo kept > /run/lease && echo kept > /var/lib/lease && cat /run/lease
      echo changed > /etc/bed-was-here || echo refused
      while :; do sleep 0.05; done`;
    const shell = {
      command: '/bin/sh',
      args: ['-c', script],
      env: { PATH: '/usr/bin:/bin' },
      mounts: 'private',
    } as const;
    const first = await wire.start(LOCATION, shell);
    await untilOutput(first, 'kept\nrefused\n');
    await first.signal('SIGUSR1');
    await untilOutput(first, 'renewed\n');
    expect(await first.stop()).to.deep.equal({ exitCode: 3 });
    expect(first.output.stdout).to.match(/ended\n$/);
    expect(await first.signal('SIGUSR1').catch(String)).to.match(/the process has ended/);

    const second = await wire.start(LOCATION, shell);
    await untilOutput(second, 'kept\nrefused\n');
    await wire.removeGuest(GUEST.guest);
    expect(await second.ended).to.deep.equal({ exitCode: -1 });
  });
});

/** Sends a line when the last one has come back, and prints each answer. An error ends it. */
const CONVERSATION = `
  const socket = require('net').connect(7007, '192.168.20.7').setNoDelay();
  let count = 0;
  socket.write('answer 0\\n');
  socket.on('data', (data) => {
    process.stdout.write(data);
    setTimeout(() => socket.write('answer ' + ++count + '\\n'), 20);
  });
  socket.on('error', (error) => console.error(String(error)));
`;

function node(script: string): { command: string; args: string[] } {
  return { command: process.execPath, args: ['-e', script] };
}

async function untilOutput({ output }: RunningCommand, text: string): Promise<void> {
  await untilValue(
    `the output ${JSON.stringify(text)}`,
    () => output,
    ({ stdout }) => stdout.includes(text),
  );
}
