import { expect } from 'chai';
import { chmod, copyFile, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { useWireFixture } from '../../bed/network/fixture/use-wire-fixture.js';
import { bridgeNetwork, type WireFixture } from '../../bed/network/fixture/wire-fixture.js';
import { cniBinFolder, nodeFolder } from '../../bed/network/open-pod-networks.js';
import { untilValue } from '../../bed/processes/wait.js';

const INTERFACE = 'podnet';
const SCRIPT = join(import.meta.dirname, '..', '..', 'bed', 'network', 'fixture', 'waiting-ipam.sh');
/** Router solicitations and reports of groups, which the kernel sends within about two seconds. */
const FIRST_FRAMES = 4;

/** The order on which the guard relies: its rules are in place before a pod can send. */
describe('The bridge plugin in ADD', () => {
  let stage: WireFixture;

  useWireFixture((opened) => {
    stage = opened;
  });

  it('passes no frame of the pod before IPAM has returned, although the port is up and in the bridge', async () => {
    const plugin = join(cniBinFolder(stage.plane), 'waiting');
    await copyFile(SCRIPT, plugin);
    await chmod(plugin, 0o755);
    const addresses = (host: number) => ({
      addresses: [{ address: `192.168.54.${host}/24` }, { address: `fd00:54::${host}/64` }],
    });
    await stage.createNetwork('slow', bridgeNetwork('order', { type: 'waiting', ...addresses(7) }));
    await stage.createNetwork('other', bridgeNetwork('order', { type: 'static', ...addresses(8) }));
    const folder = join(nodeFolder(stage.plane, 'node-1'), 'run-holdfast');
    const attaching = stage.networks.attach(await stage.createPod('node-1', [{ name: 'slow', interface: INTERFACE }]));
    const port = await untilValue(
      'IPAM to be asked',
      () => readFile(join(folder, 'begun'), 'utf8').catch(() => ''),
      (name) => name !== '',
    );
    const during = await portState(port.trim());

    const other = await stage.networks.attach(
      await stage.createPod('node-1', [{ name: 'other', interface: INTERFACE }]),
    );
    await untilValue(
      'the kernel of another pod to have sent its first frames',
      async () =>
        (
          await stage.wire.run(other.location, {
            command: '/usr/sbin/ip',
            args: ['-j', '-s', 'link', 'show', INTERFACE],
          })
        ).stdout,
      (text) => parseLinks(text)[0]!.stats64.tx.packets >= FIRST_FRAMES,
    );
    const after = await portState(port.trim());
    await writeFile(join(folder, 'go-on'), '');
    await attaching;

    for (const state of [during, after]) {
      expect(state).to.include({ master: 'order', operstate: 'DOWN' });
      expect(state.flags).to.include('UP');
      expect(state.stats64.rx.packets).to.equal(0); // since the port was created
    }
    const sent = await untilValue(
      'the pod to have sent its first frames',
      () => portState(port.trim()),
      ({ stats64 }) => stats64.rx.packets >= FIRST_FRAMES,
    );
    expect(sent.operstate).to.equal('UP');
  });

  async function portState(name: string): Promise<Link> {
    const args = ['-j', '-s', 'link', 'show', name];
    return parseLinks((await stage.wire.run('node/node-1', { command: '/usr/sbin/ip', args })).stdout)[0]!;
  }
});

interface Link {
  readonly operstate: string;
  readonly master: string;
  readonly flags: readonly string[];
  readonly stats64: { readonly rx: { readonly packets: number }; readonly tx: { readonly packets: number } };
}

function parseLinks(text: string): Link[] {
  return JSON.parse(text) as Link[];
}
