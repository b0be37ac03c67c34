import { splitKey } from '../../api/meta.js';
import type { Clock } from '../../kube/clock.js';
import type { ObjectChange } from '../../kube/informers/informer.js';
import type { ClaimQuota } from '../caches.js';

/** The workloads that wait until a claim of another owner is gone. */
export class BlockedWorkloads {
  readonly #byWorkload = new Map<string, readonly string[]>();
  readonly #byClaim = new Map<string, Set<string>>();

  /** Replaces the claims for which a workload waits. Keys are `namespace/name`. */
  set(workload: string, claims: readonly string[]): void {
    for (const claim of this.#byWorkload.get(workload) ?? []) {
      const waiting = this.#byClaim.get(claim);
      waiting?.delete(workload);
      if (waiting?.size === 0) this.#byClaim.delete(claim);
    }
    this.#byWorkload.delete(workload);
    if (claims.length === 0) return;
    this.#byWorkload.set(workload, claims);
    for (const claim of claims) this.#byClaim.set(claim, (this.#byClaim.get(claim) ?? new Set()).add(workload));
  }

  blockedBy(claim: string): readonly string[] {
    return [...(this.#byClaim.get(claim) ?? [])];
  }
}

/**
 * The workloads whose claims a quota rejects, in the order in which they came. Only the first one of a namespace tries again: if it succeeds, it
 * wakes the next. So a namespace costs one rejected write at a time, however many workloads wait in it.
 */
export class QuotaWaits {
  readonly #byNamespace = new Map<string, Set<string>>();
  readonly #wake: (key: string) => void;

  /** @param wake syncs a workload, `namespace/name`, at once */
  constructor(wake: (key: string) => void) {
    this.#wake = wake;
  }

  /** A workload that waits already keeps its place. @returns true if it is the first one, which tries again */
  join(key: string): boolean {
    const { namespace } = splitKey(key);
    const waiting = this.#byNamespace.get(namespace) ?? new Set<string>();
    this.#byNamespace.set(namespace, waiting.add(key));
    return this.#firstOf(namespace) === key;
  }

  /** The quota no longer rejects a claim of the workload: the next one may have room too. */
  leave(key: string): void {
    const { namespace } = splitKey(key);
    const waiting = this.#byNamespace.get(namespace);
    const wasFirst = this.#firstOf(namespace) === key;
    waiting?.delete(key);
    if (waiting?.size === 0) this.#byNamespace.delete(namespace);
    if (wasFirst) this.#wakeFirst(namespace);
  }

  quotaChanged({ type, object, before }: ObjectChange<ClaimQuota>): void {
    if (type !== 'changed' || object.claims !== before?.claims) this.#wakeFirst(object.metadata.namespace ?? '');
  }

  #wakeFirst(namespace: string): void {
    const first = this.#firstOf(namespace);
    if (first !== undefined) this.#wake(first);
  }

  #firstOf(namespace: string): string | undefined {
    const [first] = this.#byNamespace.get(namespace) ?? [];
    return first;
  }
}

/** For how long the writes for each workload have failed although nothing is wrong with them. */
export class WriteFailures {
  readonly #clock: Pick<Clock, 'now'>;
  readonly #since = new Map<string, number>();

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock;
  }

  /** @returns the time since the first failure, in ms */
  failed(workload: string): number {
    const now = this.#clock.now();
    const since = this.#since.get(workload) ?? now;
    this.#since.set(workload, since);
    return now - since;
  }

  ended(workload: string): void {
    this.#since.delete(workload);
  }
}
