import { joinKey, objectKey } from '../../api/meta.js';
import { controllingVmi } from '../../api/pod.js';
import type { Client } from '../../kube/client.js';
import type { Clock } from '../../kube/clock.js';
import { ControllerLoop, type SyncResult } from '../../kube/controller-loop.js';
import { messageOf } from '../../kube/errors.js';
import type { Logger } from '../../kube/log.js';
import { WorkQueue } from '../../kube/workqueue.js';
import type { Switches, VmSwitches } from '../switches.js';
import { cloudInitProblem } from './vmi/cloud-init.js';
import { Heartbeat } from './heartbeat.js';
import { stepPod } from './pod-machine.js';
import { PodWorker } from './pod-worker.js';
import { workloadName, type KubeletPod } from './pod.js';
import type { GuestNetworks, SandboxNetworks } from './sandbox-networks.js';
import { StepRunner } from './step-runner.js';
import { VirtHandlers } from './virt-handlers.js';
import type { Vmi } from './vmi/virtual-machine-instance.js';

/** Many, because a CNI ADD may wait for half a minute and must not delay the others. */
const WORKERS = 64;
const RETRY_BACKOFF = { baseMs: 10, maxMs: 1_000 };
/** The watch event of network-status arrives within this time. */
const AFTER_ATTACH_MS = 200;

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
  readonly #handlers: VirtHandlers;
  readonly #queue: WorkQueue;
  readonly #loop: ControllerLoop;
  readonly #heartbeats: Heartbeat[];
  readonly #worker: PodWorker;
  readonly #steps: StepRunner;

  constructor(options: SimulatedNodesOptions) {
    const { client, switches, networks, clock, log } = options;
    this.#options = options;
    this.#worker = new PodWorker({ client, networks, clock, random: Math.random, log });
    this.#steps = new StepRunner(log);
    const isNodeUp = this.#isNodeUp;
    const startErrorOf = (vmi: Vmi, launcher: KubeletPod) => {
      const mounted = this.#worker.mountedIn(launcher);
      return mounted && cloudInitProblem(vmi, mounted);
    };
    this.#handlers = new VirtHandlers({ ...options, guests: networks, isNodeUp, startErrorOf });
    this.#queue = new WorkQueue({ name: 'pods', clock, random: Math.random, ...RETRY_BACKOFF });
    const sync = (key: string) => this.#syncPod(key);
    const loop = { name: 'pods', queue: this.#queue, workers: WORKERS, sync, log, clock, invalidRetryMs: 5_000 };
    this.#loop = new ControllerLoop(loop);
    this.#heartbeats = options.names.map((node) => new Heartbeat({ client, node, switches, clock, log }));
    switches.onChange(() => this.resync());
  }

  /** Resolves when all nodes are Ready. */
  async start(): Promise<void> {
    const { pods, vmis } = this.#handlers;
    pods.onChange(({ object }) => this.#queue.add(objectKey(object)));
    vmis.onChange(({ object }) => {
      for (const pod of this.#handlers.launchersOf(object)) this.#queue.add(objectKey(pod));
    });
    await Promise.all([this.#handlers.start(), ...this.#heartbeats.map((beat) => beat.start())]);
    this.#loop.start();
    this.#handlers.work();
  }

  async stop(): Promise<void> {
    await Promise.all(this.#heartbeats.map((beat) => beat.stop()));
    await Promise.all([this.#loop.stop(), this.#handlers.stop()]);
  }

  /** Processes all pods, VMIs and nodes again. */
  resync(): void {
    for (const pod of [...this.#handlers.pods.cache.list(), ...this.#worker.sandboxed()])
      this.#queue.add(objectKey(pod));
    this.#handlers.resync();
    for (const beat of this.#heartbeats) {
      beat.resync().catch((error: unknown) => {
        this.#options.log.error({ error: messageOf(error) }, 'the node could not be reported lost or found');
      });
    }
  }

  /** Other nodes, which tests may create, are not simulated. */
  readonly #isNodeUp = (node: string): boolean =>
    this.#options.names.includes(node) && !this.#options.switches.isLost(node);

  async #syncPod(key: string): Promise<SyncResult> {
    const pod = this.#handlers.pods.cache.get(key);
    await this.#syncOrphans(key, pod);
    if (!pod) {
      this.#steps.forget(`pod ${key}`);
      return undefined;
    }
    const controller = controllingVmi(pod);
    const vmi = controller && this.#handlers.vmis.cache.get(joinKey(pod.metadata.namespace, controller.name));
    const step = stepPod(pod, {
      vmi: vmi?.metadata.uid === controller?.uid ? vmi : undefined,
      switches: this.#switchesOf(pod),
      isNodeUp: this.#isNodeUp,
      now: this.#options.clock.now(),
      ...this.#worker.view(pod),
    });
    const taken = await this.#steps.take(`pod ${key}`, pod, step, (change) => this.#worker.change(pod, change));
    const isAboutSandbox = 'next' in step && (step.next.kind === 'attach' || step.next.kind === 'detach');
    if (!isAboutSandbox) return taken;
    this.#steps.forget(`pod ${key}`); // an action on a sandbox does not change the object
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
}
