import { NETWORKS_ANNOTATION } from '../../../api/names.js';
import { joinKey } from '../../../api/meta.js';
import {
  type NetworkSelection,
  NetworkSelectionError,
  interfaceNameOf,
  networkSelectionsOf,
} from '../../../api/network-selection.js';
import { controllingVmi, isTerminal } from '../../../api/pod.js';
import type { Lister } from '../../../kube/cache.js';
import type { Clock, Random } from '../../../kube/clock.js';
import type { Logger } from '../../../kube/log.js';
import { ControllerLoop, type SyncResult } from '../../../kube/controller-loop.js';
import { WorkQueue } from '../../../kube/workqueue.js';
import type { ParsedNad } from '../../../cluster/transforms.js';
import type { Attachment } from '../attachment.js';
import type { NodePod, NodePods } from '../node-pods.js';

/** Number of parallel prefetches. An ADD does not wait for them. */
const WORKERS = 4;
/** After this many rounds the pod waits for something else, or an earlier process of the agent has served its ADD. */
const MAX_PREFETCH_ROUNDS = 30;

interface PrefetchDeps {
  readonly pods: Pick<NodePods, 'get' | 'onChange'>;
  readonly networks: Pick<Lister<ParsedNad>, 'get'>;
  /** Reads everything that an ADD will need. */
  readonly prefetch: (attachment: Attachment, signal: AbortSignal) => Promise<void>;
  /** Whether the interface has its addresses, so that no ADD will follow. */
  readonly isGranted: (pod: NodePod, interfaceName: string) => boolean;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly maxStalenessMs: number;
}

/**
 * Reads the objects that a launcher's ADD will need as soon as the pod is bound to the node, and again until the ADD comes. Its ADD then
 * needs one read per lease, and succeeds even if the API server became unavailable just before.
 */
export class Prefetch {
  readonly #deps: PrefetchDeps;
  readonly #queue: WorkQueue;
  readonly #loop: ControllerLoop;
  /** By UID of the launcher: its networks annotation, and the number of prefetches for that value. */
  readonly #known = new Map<string, { readonly value: string; looks: number }>();

  constructor(deps: PrefetchDeps) {
    const { clock, random, log, pods } = deps;
    this.#deps = deps;
    this.#queue = new WorkQueue({ name: 'prefetch', clock, random });
    const sync = (uid: string, signal: AbortSignal) => this.#sync(uid, signal);
    this.#loop = new ControllerLoop({ name: 'prefetch', queue: this.#queue, workers: WORKERS, sync, log, clock });
    pods.onChange((pod, gone) => this.#observe(pod, gone));
  }

  start(): void {
    this.#loop.start();
  }

  async stop(): Promise<void> {
    await this.#loop.stop();
  }

  #observe(pod: NodePod, gone: boolean): void {
    const { uid, annotations } = pod.metadata;
    const value = annotations?.[NETWORKS_ANNOTATION];
    if (gone || isTerminal(pod) || controllingVmi(pod) === undefined || value === undefined) {
      this.#known.delete(uid);
      return;
    }
    const before = this.#known.get(uid);
    if (before?.value === value) return;
    this.#known.set(uid, { value, looks: 0 });
    // pods that ran before the agent started need no ADD
    if (before !== undefined || isPending(pod)) this.#queue.add(uid);
  }

  async #sync(uid: string, signal: AbortSignal): Promise<SyncResult> {
    const { pods, prefetch: rehearse, isGranted, maxStalenessMs, log } = this.#deps;
    const known = this.#known.get(uid);
    const pod = pods.get(uid);
    if (known === undefined || pod === undefined) return undefined;
    known.looks++;
    const expected = this.#attachmentsOf(pod).filter(({ interfaceName }) => !isGranted(pod, interfaceName));
    for (const attachment of expected) {
      try {
        await rehearse(attachment, signal);
      } catch (error) {
        // the ADD will report the error
        log.debug({ pod: joinKey(pod.metadata.namespace, pod.metadata.name), err: error }, 'prefetch failed');
      }
    }
    // a running pod has had its ADD, or a hotplug brings it soon
    const isAwaited = expected.length > 0 || this.#hasUnknownNetwork(pod);
    return isAwaited && isPending(pod) && known.looks < MAX_PREFETCH_ROUNDS
      ? { requeueAfterMs: maxStalenessMs / 3 }
      : undefined;
  }

  /** Whether a NAD is not cached yet: after the start, pods may be cached before NADs. */
  #hasUnknownNetwork(pod: NodePod): boolean {
    const { networks } = this.#deps;
    return readableSelectionsOf(pod).some(({ nad }) => networks.get(joinKey(nad.namespace, nad.name)) === undefined);
  }

  /** Returns the attachments for which Holdfast's plugin will be called. */
  #attachmentsOf(pod: NodePod): Attachment[] {
    return readableSelectionsOf(pod).flatMap((selection): Attachment[] => {
      const nad = this.#deps.networks.get(joinKey(selection.nad.namespace, selection.nad.name));
      if (nad?.config.ok !== true || nad.delegation.kind !== 'holdfast') return [];
      const interfaceName = interfaceNameOf(selection);
      const rest = { containerId: '', requested: [], mac: undefined };
      return [{ pod, interfaceName, network: nad.config.network.name, selection, ...rest }];
    });
  }
}

function isPending({ status }: NodePod): boolean {
  return (status?.phase ?? 'Pending') === 'Pending';
}

/** Returns no selections if the annotation is invalid, because Multus attaches none then. */
function readableSelectionsOf(pod: NodePod): readonly NetworkSelection[] {
  try {
    return networkSelectionsOf(pod);
  } catch (error) {
    if (error instanceof NetworkSelectionError) return [];
    throw error;
  }
}
