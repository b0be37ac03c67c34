import { access, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { controllingVmi } from '../../api/pod.js';
import { systemClock } from '../../kube/clock.js';
import type { AgentInterface } from '../node/vmi/guest-agent.js';
import { type KubeletPod, uidOf } from '../node/pod.js';
import type { GuestNetworks } from '../node/sandbox-networks.js';
import { hasEnded, type MigrationState, type Vmi } from '../node/vmi/virtual-machine-instance.js';
import type { GuestCopy } from '../node/vmi/vmi-view.js';
import { until } from '../processes/wait.js';
import { nodeAddresses } from './cluster-network.js';
import { Guest } from './guest.js';
import { allowPostCopy, QemuCopy } from './guest-copy.js';
import type { GuestPrograms } from './images/guest-programs.js';
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
  readonly launcher: KubeletPod;
  /** Of the last migration. */
  target?: KubeletPod;
  copy?: { readonly migrationUid: string | undefined; readonly qemu: QemuCopy; readonly proxyEnded: Promise<unknown> };
}

/** The socket at which QEMU finds virt-handler's proxy. */
const MIGRATION_SOCKET = 'unix:/var/run/kubevirt-private/out';
/** virt-launcher waits for a guest that shuts down, and kubelet for virt-launcher. */
const SHUTDOWN_TIMEOUT_MS = 60_000;

/** Launcher pods on real nodes in which QEMU runs guests. */
export class Guests implements GuestNetworks {
  readonly #nodes: readonly RealNode[];
  readonly #launchers: Launchers;
  readonly #programs: GuestPrograms;
  /** By UID of the VMI. */
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
    if (hasEnded(vmi)) {
      await this.#launchers.endWithGuest(vmi, launcher);
      if (launcher) await this.#waitEnded(launcher);
      this.#running.delete(uid);
      return;
    }
    if (launcher && vmi.status?.phase === 'Running' && !this.#running.has(uid)) {
      await this.#start(launcher, { vmi, incoming: false });
      this.#running.set(uid, { launcher, guest: new Guest(this.#privateVolume(launcher)) });
    }
    await this.#followMigration(vmi);
    await this.#launchers.endWithGuest(vmi, launcher);
  }

  async copyOfGuest(vmi: Vmi): Promise<GuestCopy | undefined> {
    return copyIn(this.#running.get(vmi.metadata.uid ?? ''), vmi.status?.migrationState)?.qemu.state();
  }

  /** None while the guest boots. */
  async interfacesOfGuest(vmi: Vmi): Promise<readonly AgentInterface[] | undefined> {
    const running = this.#running.get(vmi.metadata.uid ?? '');
    return running?.guest.interfaces().catch(() => []);
  }

  /** Prepares the target of a migration. The source needs nothing: its QEMU stops the guest. */
  async detachGuest(launcher: KubeletPod, vmi: Vmi): Promise<void> {
    const running = this.#running.get(vmi.metadata.uid ?? '');
    if (!running || uidOf(running.launcher) === uidOf(launcher)) return;
    running.target = launcher;
    if (this.#started.has(uidOf(launcher))) return;
    const postCopy = vmi.status?.migrationState?.migrationConfiguration?.allowPostCopy === true;
    await this.#start(launcher, { vmi: withMacs(vmi, await running.guest.interfaces()), incoming: true, postCopy });
    if (postCopy) await allowPostCopy(new Guest(this.#privateVolume(launcher)), true);
  }

  /** The guest has been copied to the launcher. */
  async attachGuest(launcher: KubeletPod): Promise<void> {
    const uid = controllingVmi(launcher)?.uid ?? '';
    const running = this.#running.get(uid);
    if (running === undefined || uidOf(running.launcher) === uidOf(launcher)) return;
    await running.copy?.proxyEnded;
    this.#running.set(uid, { ...running, launcher, guest: new Guest(this.#privateVolume(launcher)) });
  }

  /** Begins the copy of a migration, or cancels it. */
  async #followMigration({ metadata: { uid = '' }, status: { migrationState } = {} }: Vmi): Promise<void> {
    const running = this.#running.get(uid);
    if (!running?.target || migrationState?.startTimestamp === undefined) return;
    const copy = copyIn(running, migrationState);
    if (migrationState.failed) await copy?.qemu.cancel();
    else if (!copy && !migrationState.completed) await this.#startCopy(running, running.target, migrationState);
  }

  async #startCopy(running: RunningGuest, target: KubeletPod, migration: MigrationState): Promise<void> {
    const { ended: proxyEnded } = await this.#proxy(running.launcher, target);
    const { migrationUid, migrationConfiguration = {} } = migration;
    const qemu = await QemuCopy.start(running.guest, MIGRATION_SOCKET, migrationConfiguration, systemClock);
    running.copy = { migrationUid, qemu, proxyEnded };
  }

  /** Waits until a guest that shuts down has ended its launcher. */
  async #waitEnded(launcher: KubeletPod): Promise<void> {
    const node = this.#node(launcher);
    if (!this.#started.has(uidOf(launcher)) || !node.isOn) return;
    const hasEnded = () =>
      node.processOf(launcher).then(
        () => false,
        () => true,
      );
    await until(`the guest in ${launcher.metadata.name} to shut down`, hasEnded, { timeoutMs: SHUTDOWN_TIMEOUT_MS });
  }

  /** Prepares the network of a launcher, then starts QEMU in it. */
  async #start(
    launcher: KubeletPod,
    request: { readonly vmi: Vmi; readonly incoming: boolean; readonly postCopy?: boolean },
  ): Promise<void> {
    const node = this.#node(launcher);
    const { launcher: program, root } = this.#programs;
    const file = join(this.#privateVolume(launcher), 'guest.json');
    await writeFile(`${file}.new`, JSON.stringify(request), { mode: 0o644 });
    const pid = await node.processOf(launcher);
    const onNode = join(privateVolumeOnNode(launcher), 'guest.json.new');
    const args = [program, root, pid, onNode, nodeAddresses(node.number).own];
    await node.run('sh', '-euc', PREPARE_NETWORK, 'sh', ...args);
    await rename(`${file}.new`, file);
    if (request.postCopy === true) {
      const namespaces = [`--target=${pid}`, '--mount', '--uts', '--ipc', '--net', '--pid'];
      const ended = node.run('nsenter', ...namespaces, '/usr/bin/virt-launcher-monitor', 'start-guest');
      ended.catch(() => undefined); // the launcher ends with it
    }
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

function copyIn(running: RunningGuest | undefined, migration: MigrationState | undefined): RunningGuest['copy'] {
  return running?.copy?.migrationUid === migration?.migrationUid ? running?.copy : undefined;
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
