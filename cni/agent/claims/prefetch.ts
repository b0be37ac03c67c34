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
import type { NodePod } from '../pods/node-pod.js';
import type { NodePods } from '../pods/node-pods.js';

/** Of a node that starts many VMs at once; an ADD does not wait for them. */
const WORKERS = 4;
/** A pod whose ADD has not come by then waits for something else, or had it from an agent before this one. */
const MAX_PREFETCH_ROUNDS = 30;

export interface PrefetchDeps {
  readonly pods: Pick<NodePods, 'get' | 'onChange'>;
  readonly networks: Pick<Lister<ParsedNad>, 'get'>;
  /** Reads all that an ADD will ask for. */
  readonly prefetch: (attachment: Attachment, signal: AbortSignal) => Promise<void>;
  /** The interface has its addresses: no ADD is to come. */
  readonly isGranted: (pod: NodePod, interfaceName: string) => boolean;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly maxStalenessMs: number;
}

/**
 * Looks at what a launcher will ask for as soon as it is bound to the node, and again while it has not asked: its ADD is one read for each
 * lease, and comes up even where the API server went away a moment before.
 */
export class Prefetch {
  readonly #deps: PrefetchDeps;
  readonly #queue: WorkQueue;
  readonly #loop: ControllerLoop;
  /** The networks annotation of each launcher, and how often it was looked at with that, by its UID. */
  readonly #known = new Map<string, { readonly value: string; looks: number }>();

  constructor(deps: PrefetchDeps) {
    const { clock, random, log, pods } = deps;
    this.#deps = deps;
    this.#queue = new WorkQueue({ name: 'prefetch', clock, random });
    const sync = (uid: string, signal: AbortSignal) => this.#sync(uid, signal);
    this.#loop = new ControllerLoop({ name: 'prefetch', queue: this.#queue, workers: WORKERS, sync, log, clock });
    pods.onChange((pod, gone) => this.#note(pod, gone));
  }

  start(): void {
    this.#loop.start();
  }

  async stop(): Promise<void> {
    await this.#loop.stop();
  }

  #note(pod: NodePod, gone: boolean): void {
    const { uid, annotations } = pod.metadata;
    const value = annotations?.[NETWORKS_ANNOTATION];
    if (gone || isTerminal(pod) || controllingVmi(pod) === undefined || value === undefined) {
      this.#known.delete(uid);
      return;
    }
    const before = this.#known.get(uid);
    if (before?.value === value) return;
    this.#known.set(uid, { value, looks: 0 });
    // after a start of the agent, pods that run already ask for nothing
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
        // the ADD will say it, to whom it concerns
        log.debug({ pod: joinKey(pod.metadata.namespace, pod.metadata.name), err: error }, 'prefetch failed');
      }
    }
    // a pod that runs has been asked for, or is by its hotplug in a moment
    const isAwaited = expected.length > 0 || this.#hasUnknownNetwork(pod);
    return isAwaited && isPending(pod) && known.looks < MAX_PREFETCH_ROUNDS
      ? { retryAfterMs: maxStalenessMs / 3 }
      : undefined;
  }

  /** After a start of the agent its pods may be known before their networks are. */
  #hasUnknownNetwork(pod: NodePod): boolean {
    const { networks } = this.#deps;
    return readableSelectionsOf(pod).some(({ nad }) => networks.get(joinKey(nad.namespace, nad.name)) === undefined);
  }

  /** Those for which our plugin will be called. */
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

/** Multus gives a pod whose annotation cannot be read no network. */
function readableSelectionsOf(pod: NodePod): readonly NetworkSelection[] {
  try {
    return networkSelectionsOf(pod);
  } catch (error) {
    if (error instanceof NetworkSelectionError) return [];
    throw error;
  }
}
