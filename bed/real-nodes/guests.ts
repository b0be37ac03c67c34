import { access, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { controllingVmi } from '../../api/pod.js';
import type { AgentInterface } from '../node/guest-agent.js';
import { type KubeletPod, uidOf } from '../node/pod.js';
import type { GuestNetworks } from '../node/sandbox-networks.js';
import { hasEnded, type Vmi } from '../node/virtual-machine-instance.js';
import { until } from '../processes/wait.js';
import { nodeAddresses } from './cluster-network.js';
import { Guest } from './guest.js';
import type { GuestPrograms } from './guest-programs.js';
import { Launchers } from './launchers.js';
import type { RealNode } from './real-node.js';

/** Of virt-handler's migration proxy on the target's node. */
const FIRST_MIGRATION_PORT = 49_152;

/** virt-handler's part with a launcher: what it needs from KubeVirt's code is found by the names that this code uses. */
const PREPARE_NETWORK = `
launcher=$1 packages=$2 pid=$3 request=$4 address=$5
ln -sfn "$launcher" /run/virt-chroot
export PATH="/run:$packages/usr/sbin:$PATH" MY_POD_IP="$address"
LD_LIBRARY_PATH=$(echo "$packages"/usr/lib/*-linux-gnu)
export LD_LIBRARY_PATH
exec "$launcher" prepare-network "$pid" "$request"`;

/** A guest with the launcher in which it runs. */
interface RunningGuest {
  readonly guest: Guest;
  launcher: KubeletPod;
}

/** Launcher pods on real nodes in which QEMU runs guests. */
export class Guests implements GuestNetworks {
  readonly #nodes: readonly RealNode[];
  readonly #launchers: Launchers;
  readonly #programs: GuestPrograms;
  /** By UID of the VMI. */
  readonly #vmis = new Map<string, Vmi>();
  readonly #running = new Map<string, RunningGuest>();
  /** UIDs of launchers in which QEMU was started, also if their guest has left. */
  readonly #started = new Set<string>();
  #migrations = 0;

  constructor(nodes: readonly RealNode[], programs: GuestPrograms) {
    this.#nodes = nodes;
    this.#launchers = new Launchers(nodes);
    this.#programs = programs;
  }

  /** The guest of a running VMI. */
  of({ metadata: { uid = '', name } }: Pick<Vmi, 'metadata'>): Guest {
    const found = this.#running.get(uid);
    if (found === undefined) throw new Error(`VMI ${name} has no guest`);
    return found.guest;
  }

  async followGuest(vmi: Vmi, launcher: KubeletPod | undefined): Promise<void> {
    const { uid = '' } = vmi.metadata;
    this.#vmis.set(uid, vmi);
    if (hasEnded(vmi)) {
      this.#vmis.delete(uid);
      this.#running.delete(uid);
    } else if (launcher && vmi.status?.phase === 'Running' && !this.#running.has(uid)) {
      await this.#start(launcher, { vmi, incoming: false });
      this.#running.set(uid, { launcher, guest: new Guest(this.#privateVolume(launcher)) });
    }
    await this.#launchers.endWithGuest(vmi, launcher);
  }

  /** None while the guest boots. */
  async interfacesOfGuest(vmi: Vmi): Promise<readonly AgentInterface[] | undefined> {
    const running = this.#running.get(vmi.metadata.uid ?? '');
    return running?.guest.interfaces().catch(() => []);
  }

  /** Prepares the target of a migration. The source needs nothing: its QEMU stops the guest. */
  async detachGuest(launcher: KubeletPod): Promise<void> {
    const uid = controllingVmi(launcher)?.uid ?? '';
    const [vmi, running] = [this.#vmis.get(uid), this.#running.get(uid)];
    if (!vmi || !running || this.#started.has(uidOf(launcher))) return;
    await this.#start(launcher, { vmi: withMacs(vmi, await running.guest.interfaces()), incoming: true });
  }

  /** Migrates the guest to the launcher, with QEMU's own protocol. */
  async attachGuest(launcher: KubeletPod): Promise<void> {
    const uid = controllingVmi(launcher)?.uid ?? '';
    const running = this.#running.get(uid);
    if (running === undefined || uidOf(running.launcher) === uidOf(launcher)) return;
    const proxy = await this.#proxy(running.launcher, launcher);
    await running.guest.migrate('unix:/var/run/kubevirt-private/out');
    await proxy.ended;
    this.#running.set(uid, { launcher, guest: new Guest(this.#privateVolume(launcher)) });
  }

  /** Prepares the network of a launcher, then starts QEMU in it. */
  async #start(launcher: KubeletPod, request: { readonly vmi: Vmi; readonly incoming: boolean }): Promise<void> {
    const node = this.#node(launcher);
    const { launcher: program, root } = this.#programs;
    const file = join(this.#privateVolume(launcher), 'guest.json');
    await writeFile(`${file}.new`, JSON.stringify(request), { mode: 0o644 });
    const pid = await node.processOf(launcher);
    const onNode = join(privateVolumeOnNode(launcher), 'guest.json.new');
    const args = [program, root, pid, onNode, nodeAddresses(node.number).own];
    await node.run('sh', '-euc', PREPARE_NETWORK, 'sh', ...args);
    await rename(`${file}.new`, file);
    this.#started.add(uidOf(launcher));
    await until(`QEMU to run in ${launcher.metadata.name}`, () => exists(join(this.#privateVolume(launcher), 'qmp')));
  }

  /** Connects two launchers, as the virt-handlers of both nodes do. */
  async #proxy(source: KubeletPod, target: KubeletPod): Promise<{ readonly ended: Promise<unknown> }> {
    const { launcher: program } = this.#programs;
    const [from, to] = [source, target].map((pod) => this.#node(pod)) as [RealNode, RealNode];
    const port = FIRST_MIGRATION_PORT + this.#migrations++;
    const address = `tcp:${nodeAddresses(to.number).own}:${String(port)}`;
    const ended = Promise.all([
      to.run(program, 'relay', address, `unix:${privateVolumeOnNode(target)}/in`),
      from.run(program, 'relay', `unix:${privateVolumeOnNode(source)}/out`, address),
    ]);
    ended.catch(() => undefined); // awaited after the migration
    await until('the proxy of the migration', () => exists(join(this.#privateVolume(source), 'out')));
    return { ended };
  }

  #node({ spec, metadata }: KubeletPod): RealNode {
    const found = this.#nodes.find(({ name }) => name === spec?.nodeName);
    if (found === undefined) throw new Error(`pod ${metadata.name} is on no real node`);
    return found;
  }

  #privateVolume(launcher: KubeletPod): string {
    return this.#node(launcher).disk(privateVolumeOnNode(launcher));
  }
}

/** A guest takes its MAC addresses along. The new launcher may have others. */
function withMacs(vmi: Vmi, inGuest: readonly AgentInterface[]): Vmi {
  const copy = structuredClone(vmi);
  for (const [index, wanted] of (copy.spec?.domain?.devices?.interfaces ?? []).entries()) {
    const found = inGuest.find(({ name }) => name === `eth${String(index)}`);
    if (found) wanted.macAddress = found.mac;
  }
  return copy;
}

function privateVolumeOnNode(launcher: KubeletPod): string {
  return `/var/lib/kubelet/pods/${uidOf(launcher)}/volumes/kubernetes.io~empty-dir/private`;
}

function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
