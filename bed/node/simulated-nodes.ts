import { joinKey, objectKey } from '../../api/meta.js';
import { controllingVmi } from '../../api/pod.js';
import type { Client } from '../../kube/client.js';
import type { Clock } from '../../kube/clock.js';
import { isNotFound, messageOf } from '../../kube/errors.js';
import { Informer } from '../../kube/informer.js';
import type { Logger } from '../../kube/log.js';
import { ControllerLoop, type SyncResult } from '../../kube/controller-loop.js';
import { WorkQueue } from '../../kube/workqueue.js';
import type { Switches, VmSwitches } from '../switches.js';
import { cloudInitProblem } from './cloud-init.js';
import { Heartbeat } from './heartbeat.js';
import { guestMoves } from './guest-moves.js';
import type { GuestNetworks, SandboxNetworks } from './sandbox-networks.js';
import { stepPod } from './pod-machine.js';
import { PodWorker } from './pod-worker.js';
import { KUBELET_PODS, workloadName, type KubeletPod } from './pod.js';
import type { Step } from './step.js';
import { VMIS, type Vmi } from './virtual-machine-instance.js';
import { launcherOf, stepVmi } from './vmi-machine.js';

/** Many, because a CNI ADD may wait for half a minute and must not delay the others. */
const WORKERS = { pods: 64, vmis: 8 };
const RETRY_BACKOFF = { baseMs: 10, maxMs: 1_000 };
/** The watch event of network-status arrives within this time. */
const AFTER_ATTACH_MS = 200;
const BY_VMI_UID = 'vmi-uid';

interface SimulatedNodesOptions {
  /** An administrator's client, for nodes and pods. */
  readonly client: Client;
  /** virt-handler's client, because virt-api silently reverts changes of a VMI's status by others. */
  readonly handlerClient: Client;
  readonly names: readonly string[];
  readonly switches: Switches;
  readonly networks: SandboxNetworks & GuestNetworks;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Simulates nodes: kubelet, Multus, dynamic networks controller and virt-handler, all in this process. */
export class SimulatedNodes {
  readonly #options: SimulatedNodesOptions;
  readonly #pods: Informer<KubeletPod>;
  readonly #vmis: Informer<Vmi>;
  readonly #podQueue: WorkQueue;
  readonly #vmiQueue: WorkQueue;
  readonly #loops: ControllerLoop[];
  readonly #heartbeats: Heartbeat[];
  readonly #worker: PodWorker;
  /** The resourceVersion that was last changed, by key. The cached object with this version is outdated. */
  readonly #changed = new Map<string, string>();
  /** Start of the copy of a migration, by key of the VMI. */
  readonly #copyingSince = new Map<string, number>();

  constructor(options: SimulatedNodesOptions) {
    const { client, switches, networks, clock, log } = options;
    this.#options = options;
    this.#worker = new PodWorker({ client, networks, clock, random: Math.random, log });
    const byVmi = (pod: KubeletPod) => [controllingVmi(pod)?.uid ?? ''];
    this.#pods = new Informer<KubeletPod>(client, KUBELET_PODS, { indexes: { [BY_VMI_UID]: byVmi }, log, clock });
    this.#vmis = new Informer<Vmi>(client, VMIS, { log, clock });
    const queue = (name: string) => new WorkQueue({ name, clock, random: Math.random, ...RETRY_BACKOFF });
    [this.#podQueue, this.#vmiQueue] = [queue('pods'), queue('vmis')];
    const loop = (name: keyof typeof WORKERS, workQueue: WorkQueue, sync: (key: string) => Promise<SyncResult>) =>
      new ControllerLoop({ name, queue: workQueue, workers: WORKERS[name], sync, log, clock, invalidRetryMs: 5_000 });
    this.#loops = [
      loop('pods', this.#podQueue, (key) => this.#syncPod(key)),
      loop('vmis', this.#vmiQueue, (key) => this.#syncVmi(key)),
    ];
    this.#heartbeats = options.names.map((node) => new Heartbeat({ client, node, switches, clock, log }));
    switches.onChange(() => this.resync());
  }

  /** Resolves when all nodes are Ready. */
  async start(): Promise<void> {
    this.#pods.onChange(({ object }) => this.#onPod(object));
    this.#vmis.onChange(({ object }) => this.#onVmi(object));
    this.#pods.start();
    this.#vmis.start();
    await Promise.all([this.#pods.synced(), this.#vmis.synced(), ...this.#heartbeats.map((beat) => beat.start())]);
    for (const loop of this.#loops) loop.start();
  }

  async stop(): Promise<void> {
    await Promise.all(this.#heartbeats.map((beat) => beat.stop()));
    await Promise.all(this.#loops.map((loop) => loop.stop()));
    await Promise.all([this.#pods.stop(), this.#vmis.stop()]);
  }

  /** Processes all pods, VMIs and nodes again. */
  resync(): void {
    for (const pod of [...this.#pods.cache.list(), ...this.#worker.sandboxed()]) this.#podQueue.add(objectKey(pod));
    for (const vmi of this.#vmis.cache.list()) this.#vmiQueue.add(objectKey(vmi));
    for (const beat of this.#heartbeats) {
      beat.resync().catch((error: unknown) => {
        this.#options.log.error({ error: messageOf(error) }, 'the node could not be reported lost or found');
      });
    }
  }

  /** Other nodes, which tests may create, are not simulated. */
  readonly #isNodeUp = (node: string): boolean =>
    this.#options.names.includes(node) && !this.#options.switches.isLost(node);

  #onPod(pod: KubeletPod): void {
    this.#podQueue.add(objectKey(pod));
    const vmi = controllingVmi(pod);
    if (vmi) this.#vmiQueue.add(joinKey(pod.metadata.namespace, vmi.name));
  }

  #onVmi(vmi: Vmi): void {
    this.#vmiQueue.add(objectKey(vmi));
    for (const pod of this.#launchersOf(vmi)) this.#podQueue.add(objectKey(pod));
  }

  #launchersOf(vmi: Vmi): readonly KubeletPod[] {
    return this.#pods.cache.byIndex(BY_VMI_UID, vmi.metadata.uid ?? '');
  }

  async #syncVmi(key: string): Promise<SyncResult> {
    const vmi = this.#vmis.cache.get(key);
    if (!vmi) {
      this.#copyingSince.delete(key);
      this.#changed.delete(`vmi ${key}`);
      return undefined;
    }
    const { switches, clock, networks, handlerClient } = this.#options;
    const current = switches.of(vmi.metadata.namespace, vmi.metadata.name);
    const step = stepVmi(vmi, {
      launchers: this.#launchersOf(vmi),
      switches: current,
      agent: current.guestAgent ? await networks.interfacesOfGuest(vmi) : undefined,
      isNodeUp: this.#isNodeUp,
      now: clock.now(),
      copyingSince: this.#copyingSince.get(key),
      startError: this.#startErrorOf(vmi),
    });
    return this.#take(`vmi ${key}`, vmi, step, async (next) => {
      await this.#moveGuest(vmi, next);
      await networks.followGuest(next, launcherOf(next, this.#launchersOf(next)));
      const written = await handlerClient.replace(VMIS, next);
      if (!vmi.status?.migrationState?.startTimestamp && next.status?.migrationState?.startTimestamp) {
        this.#copyingSince.set(key, clock.now());
      }
      return written;
    });
  }

  #startErrorOf(vmi: Vmi): string | undefined {
    const launcher = launcherOf(vmi, this.#launchersOf(vmi));
    const mounted = launcher && this.#worker.mountedIn(launcher);
    return mounted && cloudInitProblem(vmi, mounted);
  }

  async #moveGuest(before: Vmi, after: Vmi): Promise<void> {
    const { leaving, arriving } = guestMoves(before, after);
    const podsOf = (names: readonly string[]) =>
      names.flatMap((name) => this.#pods.cache.get(joinKey(before.metadata.namespace, name)) ?? []);
    for (const pod of podsOf(leaving)) await this.#options.networks.detachGuest(pod);
    for (const pod of podsOf(arriving)) await this.#options.networks.attachGuest(pod);
  }

  async #syncPod(key: string): Promise<SyncResult> {
    const pod = this.#pods.cache.get(key);
    await this.#syncOrphans(key, pod);
    if (!pod) {
      this.#changed.delete(`pod ${key}`);
      return undefined;
    }
    const controller = controllingVmi(pod);
    const vmi = controller && this.#vmis.cache.get(joinKey(pod.metadata.namespace, controller.name));
    const step = stepPod(pod, {
      vmi: vmi?.metadata.uid === controller?.uid ? vmi : undefined,
      switches: this.#switchesOf(pod),
      isNodeUp: this.#isNodeUp,
      now: this.#options.clock.now(),
      ...this.#worker.view(pod),
    });
    const taken = await this.#take(`pod ${key}`, pod, step, (change) => this.#worker.change(pod, change));
    const isAboutSandbox = 'next' in step && (step.next.kind === 'attach' || step.next.kind === 'detach');
    if (!isAboutSandbox) return taken;
    this.#changed.delete(`pod ${key}`); // an action on a sandbox does not change the object
    return { requeueAfterMs: step.next.kind === 'attach' ? AFTER_ATTACH_MS : 0 };
  }

  async #syncOrphans(key: string, current: KubeletPod | undefined): Promise<void> {
    for (const orphan of this.#worker.orphans(key, current)) {
      if (!this.#isNodeUp(orphan.spec?.nodeName ?? '') || this.#switchesOf(orphan).delayNetworkEnd) continue;
      await this.#worker.removeOrphan(orphan);
      this.#options.log.info({ object: `pod ${key}` }, 'gone: networks detached');
    }
  }

  #switchesOf(pod: KubeletPod): VmSwitches {
    return this.#options.switches.of(pod.metadata.namespace, workloadName(pod));
  }

  /** Carries out a step of the state machine, unless the object that it is based on is outdated. */
  async #take<Change>(
    name: string,
    object: KubeletPod | Vmi,
    step: Step<Change>,
    write: (change: Change) => Promise<unknown>,
  ): Promise<SyncResult> {
    const { log } = this.#options;
    if ('waitFor' in step) {
      return step.recheckAfterMs === undefined ? undefined : { requeueAfterMs: step.recheckAfterMs };
    }
    const version = object.metadata.resourceVersion ?? '';
    if (this.#changed.get(name) === version) return undefined; // the event of that change will arrive
    this.#changed.set(name, version);
    try {
      await write(step.next);
      log.info({ object: name }, step.reason);
    } catch (error) {
      this.#changed.delete(name);
      if (!isNotFound(error)) throw error;
    }
    return undefined;
  }
}
