import { NETWORKS_ANNOTATION } from '../../../api/names.js';
import { joinKey } from '../../../api/meta.js';
import {
  type NetworkSelection,
  NetworkSelectionError,
  interfaceNameOf,
  networkSelectionsOf,
} from '../../../api/networks/network-selection.js';
import { controllingVmi, isTerminal } from '../../../api/pod.js';
import type { Clock, Random } from '../../../kube/clock.js';
import type { Logger } from '../../../kube/log.js';
import { ControllerLoop, type SyncResult } from '../../../kube/controller-loop.js';
import { WorkQueue } from '../../../kube/workqueue.js';
import { type Attachment, userOfAttachment } from '../attachment.js';
import type { NodePod, NodePods } from '../node-pods.js';
import type { PoolLookup } from '../pool-lookup.js';
import type { RequestContext } from '../request-queue.js';
import type { ClaimAuthorization } from './claim-authorization.js';
import type { ClaimGrants } from './claim-grants.js';

/** Number of parallel prefetches. An ADD does not wait for them. */
const WORKERS = 4;
/** After this many rounds the pod waits for something else, or an earlier process of the agent has served its ADD. */
const MAX_PREFETCH_ROUNDS = 30;

interface PrefetchDeps {
  readonly pods: Pick<NodePods, 'get' | 'onChange'>;
  readonly lookup: Pick<PoolLookup, 'nad' | 'load' | 'loadNad'>;
  readonly authorization: Pick<ClaimAuthorization, 'decide'>;
  readonly grants: Pick<ClaimGrants, 'attempt'>;
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
    const { pods, isGranted, maxStalenessMs, clock, lookup, log } = this.#deps;
    const known = this.#known.get(uid);
    const pod = pods.get(uid);
    if (known === undefined || pod === undefined) return undefined;
    known.looks++;
    const since = clock.now();
    // one that did not exist may have been created, and one that cannot be read now is unknown
    const sinceOf = (nad: string) => (lookup.nad(nad) === undefined ? since : undefined);
    await Promise.allSettled(nadKeysOf(pod).map((nad) => lookup.loadNad(nad, { signal }, sinceOf(nad))));
    const expected = this.#attachmentsOf(pod).filter(({ interfaceName }) => !isGranted(pod, interfaceName));
    for (const attachment of expected) {
      try {
        await this.#read(attachment, since, { signal });
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

  /** Reads everything that an ADD will need. @param since ignores reads before this time, in the clock's ms */
  async #read(attachment: Attachment, since: number, call: RequestContext): Promise<void> {
    const { lookup, authorization, grants } = this.#deps;
    await lookup.load(userOfAttachment(attachment), call, since);
    const decision = await authorization.decide(attachment, call, since);
    if (decision.kind === 'claim') await grants.attempt(attachment, decision.claim, call, since);
  }

  /** Whether a NAD does not exist yet, or could not be read. */
  #hasUnknownNetwork(pod: NodePod): boolean {
    return nadKeysOf(pod).some((nad) => this.#deps.lookup.nad(nad) === undefined);
  }

  /** Returns the attachments for which Holdfast's plugin will be called. */
  #attachmentsOf(pod: NodePod): Attachment[] {
    return readableSelectionsOf(pod).flatMap((selection): Attachment[] => {
      const nad = this.#deps.lookup.nad(joinKey(selection.nad.namespace, selection.nad.name));
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

function nadKeysOf(pod: NodePod): string[] {
  return readableSelectionsOf(pod).map(({ nad }) => joinKey(nad.namespace, nad.name));
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
