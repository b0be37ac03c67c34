import { joinKey, objectKey } from '../../api/meta.js';
import { controllingVmi } from '../../api/pod.js';
import type { Client } from '../../kube/client.js';
import type { Clock } from '../../kube/clock.js';
import { ControllerLoop, type SyncResult } from '../../kube/controller-loop.js';
import { Informer } from '../../kube/informers/informer.js';
import type { Logger } from '../../kube/log.js';
import { WorkQueue } from '../../kube/workqueue.js';
import type { Switches } from '../switches.js';
import { guestMoves } from './vmi/guest-moves.js';
import { KUBELET_PODS, type KubeletPod } from './pod.js';
import type { GuestNetworks } from './sandbox-networks.js';
import { StepRunner } from './step-runner.js';
import { hasGuest, type Vmi, VMIS } from './vmi/virtual-machine-instance.js';
import { launcherOf, stepVmi } from './vmi/vmi-machine.js';

const WORKERS = 8;
const RETRY_BACKOFF = { baseMs: 10, maxMs: 1_000 };
const BY_VMI_UID = 'vmi-uid';
/** Of launchers, with the UID of their VMI. */
const CREATED_BY_LABEL = 'kubevirt.io/created-by';

export interface VirtHandlersOptions {
  /** An administrator's client, which reads pods. */
  readonly client: Client;
  /** virt-handler's client, because virt-api silently reverts changes of a VMI's status by others. */
  readonly handlerClient: Client;
  readonly switches: Switches;
  readonly guests: GuestNetworks;
  readonly isNodeUp: (node: string) => boolean;
  /** Why the guest of a VMI cannot start in this launcher. */
  readonly startErrorOf: (vmi: Vmi, launcher: KubeletPod) => string | undefined;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Simulates the virt-handlers of all nodes. */
export class VirtHandlers {
  /** With an index of launchers; the kubelets read them too. */
  readonly pods: Informer<KubeletPod>;
  readonly vmis: Informer<Vmi>;
  readonly #options: VirtHandlersOptions;
  readonly #queue: WorkQueue;
  readonly #loop: ControllerLoop;
  readonly #steps: StepRunner;
  /** Start of the copy of a migration, by key of the VMI. */
  readonly #copyingSince = new Map<string, number>();

  constructor(options: VirtHandlersOptions) {
    const { client, clock, log } = options;
    this.#options = options;
    const byVmi = (pod: KubeletPod) => [controllingVmi(pod)?.uid ?? ''];
    this.pods = new Informer<KubeletPod>(client, KUBELET_PODS, { indexes: { [BY_VMI_UID]: byVmi }, log, clock });
    this.vmis = new Informer<Vmi>(client, VMIS, { log, clock });
    this.#queue = new WorkQueue({ name: 'vmis', clock, random: Math.random, ...RETRY_BACKOFF });
    const sync = (key: string) => this.#sync(key);
    const loop = { name: 'vmis', queue: this.#queue, workers: WORKERS, sync, log, clock, invalidRetryMs: 5_000 };
    this.#loop = new ControllerLoop(loop);
    this.#steps = new StepRunner(log);
  }

  /** Resolves when both informers are synced. Then {@link work} may begin. */
  async start(): Promise<void> {
    this.pods.onChange(({ object }) => {
      const vmi = controllingVmi(object);
      if (vmi) this.#queue.add(joinKey(object.metadata.namespace, vmi.name));
    });
    this.vmis.onChange(({ object }) => this.#queue.add(objectKey(object)));
    this.pods.start();
    this.vmis.start();
    await Promise.all([this.pods.synced(), this.vmis.synced()]);
  }

  work(): void {
    this.#loop.start();
  }

  async stop(): Promise<void> {
    await this.#loop.stop();
    await Promise.all([this.pods.stop(), this.vmis.stop()]);
  }

  /** Processes all VMIs again. */
  resync(): void {
    for (const vmi of this.vmis.cache.list()) this.#queue.add(objectKey(vmi));
  }

  launchersOf(vmi: Vmi): readonly KubeletPod[] {
    return this.pods.cache.byIndex(BY_VMI_UID, vmi.metadata.uid ?? '');
  }

  async #sync(key: string): Promise<SyncResult> {
    const vmi = this.vmis.cache.get(key);
    if (!vmi) {
      this.#copyingSince.delete(key);
      this.#steps.forget(`vmi ${key}`);
      return undefined;
    }
    const { switches, clock, guests, handlerClient, isNodeUp, startErrorOf } = this.#options;
    const current = switches.of(vmi.metadata.namespace, vmi.metadata.name);
    const launchers = await this.#knownLaunchersOf(vmi);
    const launcher = launcherOf(vmi, launchers);
    const step = stepVmi(vmi, {
      launchers,
      switches: current,
      agent: current.guestAgent ? await guests.interfacesOfGuest(vmi) : undefined,
      isNodeUp,
      now: clock.now(),
      copyingSince: this.#copyingSince.get(key),
      copy: await guests.copyOfGuest?.(vmi),
      startError: launcher && startErrorOf(vmi, launcher),
    });
    return this.#steps.take(`vmi ${key}`, vmi, step, async (next) => {
      await this.#moveGuest(vmi, next);
      await guests.followGuest(next, launcherOf(next, launchers));
      const written = await handlerClient.replace(VMIS, next);
      if (!vmi.status?.migrationState?.startTimestamp && next.status?.migrationState?.startTimestamp) {
        this.#copyingSince.set(key, clock.now());
      }
      return written;
    });
  }

  /** Reads them live if the cache lacks the one in which the guest runs: its event may only be late. */
  async #knownLaunchersOf(vmi: Vmi): Promise<readonly KubeletPod[]> {
    const cached = this.launchersOf(vmi);
    if (!hasGuest(vmi) || launcherOf(vmi, cached) !== undefined) return cached;
    const { namespace, uid = '' } = vmi.metadata;
    const selector = { namespace, labelSelector: `${CREATED_BY_LABEL}=${uid}` };
    return (await this.#options.client.list(KUBELET_PODS, selector)).items;
  }

  async #moveGuest(before: Vmi, after: Vmi): Promise<void> {
    const { leaving, arriving } = guestMoves(before, after);
    const podsOf = (names: readonly string[]) =>
      names.flatMap((name) => this.pods.cache.get(joinKey(before.metadata.namespace, name)) ?? []);
    for (const pod of podsOf(leaving)) await this.#options.guests.detachGuest(pod, after);
    for (const pod of podsOf(arriving)) await this.#options.guests.attachGuest(pod);
  }
}
