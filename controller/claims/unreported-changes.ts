import type { IPAMClaim } from '../../api/ipam-claim.js';
import { NETWORK_STATUS_ANNOTATION } from '../../api/names.js';
import { type Pod, controllingVmi } from '../../api/pod.js';
import type { Clock } from '../../kube/clock.js';
import type { ObjectChange } from '../../kube/informer.js';
import { setMostRecent } from '../../kube/cache.js';
import { workloadOfClaim } from '../../cluster/watch-specs.js';
import { type LifeEvent, allocationEventsOf, awaitsAllocation, useEventsOf } from './life-events.js';
import type { ObservedWorkload } from './observed-workload.js';
import { networkStatusesOf } from './references.js';

/** How long the first address of a VM waits for the others, so that one event names all. */
const COLLECT_MS = 10_000;
/** Launchers that wait for their event. Beyond this number, the events of the least recent ones are not recorded. */
const MAX_LAUNCHERS = 4096;
/** For one launcher; no VM has as many interfaces. */
const MAX_INTERFACES = 256;
/** IFNAMSIZ of Linux without the final zero. Users of the namespace can write longer names into the annotation. */
const MAX_INTERFACE_NAME = 15;

/**
 * Changes that watches have shown and that no event has told yet: claims got addresses, launchers got networks. The first list after a start shows
 * no change, so a new leader repeats nothing.
 */
export class UnreportedChanges {
  readonly #clock: Pick<Clock, 'now'>;
  /** When the first unreported address of each workload was seen, by the clock. */
  readonly #allocations = new Map<string, number>();
  /** Interfaces that got another network or other addresses, by the UID of the launcher. */
  readonly #interfaces = new Map<string, ReadonlySet<string>>();

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
    const { uid = '' } = object.metadata;
    if (type === 'removed') this.#interfaces.delete(uid);
    // a pod that no VMI controls belongs to no workload, which could take its changes
    if (type !== 'changed' || before === undefined || controllingVmi(object) === undefined) return;
    if (statusOf(object) === statusOf(before)) return;
    const changed = [...(this.#interfaces.get(uid) ?? []), ...changedInterfaces(before, object)];
    if (changed.length === 0) return;
    setMostRecent(this.#interfaces, uid, new Set(changed.slice(0, MAX_INTERFACES)), MAX_LAUNCHERS);
  }

  /** @returns the events to record now, and after which time to ask again for the others */
  take(workload: string, observed: ObservedWorkload): { events: LifeEvent[]; againAfterMs?: number } {
    const uses = observed.launchers.flatMap((pod) => this.#takeUses(pod, observed));
    const since = this.#allocations.get(workload);
    if (since === undefined) return { events: uses };
    const leftMs = since + COLLECT_MS - this.#clock.now();
    // a launcher that uses addresses shows that no other address is missing
    if (uses.length === 0 && leftMs > 0 && awaitsAllocation(observed)) return { events: [], againAfterMs: leftMs };
    this.#allocations.delete(workload);
    return { events: [...allocationEventsOf(observed), ...uses] };
  }

  #takeUses(pod: Pod, observed: ObservedWorkload): LifeEvent[] {
    const { uid = '' } = pod.metadata;
    const interfaces = this.#interfaces.get(uid);
    this.#interfaces.delete(uid);
    return interfaces === undefined ? [] : useEventsOf(pod, observed, interfaces);
  }
}

/** Returns the interfaces of attachments that the pod did not have before, with these addresses. */
function changedInterfaces(before: Pod, after: Pod): string[] {
  const known = new Set(networkStatusesOf(before).map((status) => JSON.stringify(status)));
  return networkStatusesOf(after)
    .filter((status) => !known.has(JSON.stringify(status)))
    .flatMap(({ interface: name = '' }) => (name.length > MAX_INTERFACE_NAME ? [] : [name]));
}

function countOf(claim: IPAMClaim): number {
  return claim.status?.ips?.length ?? 0;
}

function statusOf(pod: Pod): string | undefined {
  return pod.metadata.annotations?.[NETWORK_STATUS_ANNOTATION];
}
