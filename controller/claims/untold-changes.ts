import type { IPAMClaim } from '../../api/ipam-claim.js';
import { NETWORK_STATUS_ANNOTATION } from '../../api/names.js';
import type { Pod } from '../../api/pod.js';
import type { Clock } from '../../kube/clock.js';
import type { ObjectChange } from '../../kube/informer.js';
import { workloadOfClaim } from '../../cluster/indexes.js';
import { workloadOfLauncher } from '../indexes.js';
import { type LifeEvent, allocationEventsOf, awaitsAllocation, useEventsOf } from './life-events.js';
import type { ObservedWorkload } from './observed-workload.js';

/** How long the first address of a VM waits for the others, so that one event names all. */
const COLLECT_MS = 2_000;

/**
 * Changes that watches have shown and that no event has told yet: claims got addresses, launchers got networks. The first list after a start shows
 * no change, so a new leader repeats nothing.
 */
export class UntoldChanges {
  readonly #clock: Pick<Clock, 'now'>;
  /** When the first untold address of each workload was seen, by the clock. */
  readonly #allocations = new Map<string, number>();
  /** By workload: launchers as they were before their networks changed, by UID. */
  readonly #launchers = new Map<string, Map<string, Pod>>();

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock;
  }

  claimChanged({ object, before }: ObjectChange<IPAMClaim>): void {
    if (before === undefined || countOf(before) > 0 || countOf(object) === 0) return;
    for (const workload of workloadOfClaim(object)) {
      if (!this.#allocations.has(workload)) this.#allocations.set(workload, this.#clock.now());
    }
  }

  launcherChanged({ type, object, before }: ObjectChange<Pod>): void {
    if (type !== 'changed' || before === undefined || statusOf(object) === statusOf(before)) return;
    const workload = workloadOfLauncher(object);
    const launchers = this.#launchers.get(workload) ?? new Map<string, Pod>();
    const { uid = '' } = object.metadata;
    if (!launchers.has(uid)) launchers.set(uid, before);
    this.#launchers.set(workload, launchers);
  }

  /** @returns the events to record now, and after which time to ask again for the others */
  take(workload: string, observed: ObservedWorkload): { events: LifeEvent[]; againAfterMs?: number } {
    const launchers = this.#launchers.get(workload);
    this.#launchers.delete(workload);
    const uses = [...(launchers ?? [])].flatMap(([uid, before]) => this.#usesOf(uid, before, observed));
    const since = this.#allocations.get(workload);
    if (since === undefined) return { events: uses };
    const leftMs = since + COLLECT_MS - this.#clock.now();
    // a launcher that uses addresses shows that no other address is missing
    if (uses.length === 0 && leftMs > 0 && awaitsAllocation(observed)) return { events: [], againAfterMs: leftMs };
    this.#allocations.delete(workload);
    return { events: [...allocationEventsOf(observed), ...uses] };
  }

  #usesOf(uid: string, before: Pod, observed: ObservedWorkload): LifeEvent[] {
    const pod = observed.launchers.find(({ metadata }) => metadata.uid === uid);
    if (pod === undefined) return [];
    const known = new Set(useEventsOf(before, observed).map(({ message }) => message));
    return useEventsOf(pod, observed).filter(({ message }) => !known.has(message));
  }
}

function countOf(claim: IPAMClaim): number {
  return claim.status?.ips?.length ?? 0;
}

function statusOf(pod: Pod): string | undefined {
  return pod.metadata.annotations?.[NETWORK_STATUS_ANNOTATION];
}
