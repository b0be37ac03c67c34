import type { LeaseRecord } from './lease.js';

/** A lease that looks leaked. */
export interface LeakCandidate<K> {
  readonly lease: LeaseRecord;
  /** Why it looks leaked. */
  readonly leak: K;
  /** When the lease was first observed in this state, in milliseconds. */
  readonly firstSeenAt: number;
}

interface LeakCandidatesOptions<K> {
  /** Judges a lease by caches, which may be stale. Undefined: it does not look leaked. `unknown`: its owner was not looked up this time. */
  readonly leakOf: (lease: LeaseRecord) => K | 'unknown' | undefined;
  /** How long a lease must look leaked before it is checked. */
  readonly afterMs: number;
  /** How many leases are checked after one observation. */
  readonly maxChecks: number;
}

/** Leases that look leaked in caches. One observation proves nothing: they are checked once they have looked the same for a while. */
export class LeakCandidates<K> {
  readonly #options: LeakCandidatesOptions<K>;
  /** By the lease's UID. Without its entry, the next observation of a lease is the first one. */
  readonly known = new Map<string, LeakCandidate<K>>();

  constructor(options: LeakCandidatesOptions<K>) {
    this.#options = options;
  }

  /**
   * Observes all leases. If one changes between two steps, its resourceVersion differs and the write fails. A lease whose leak is unknown stays a candidate, or else
   * owners that are looked up in turns would never be found missing twice. It is not due: the last observation must have found it leaked.
   * @param leases were listed before their owners are looked up, because an owner exists before its lease does
   * @returns the leases to check, those first that have looked leaked for longest
   */
  *observe(leases: readonly LeaseRecord[], now: number): Generator<undefined, readonly LeakCandidate<K>[]> {
    const { leakOf, afterMs, maxChecks } = this.#options;
    const found: LeakCandidate<K>[] = [];
    const unknown: LeakCandidate<K>[] = [];
    for (const lease of leases) {
      const { uid, resourceVersion } = lease.metadata;
      const leak = leakOf(lease);
      const known = this.known.get(uid);
      const before = known?.lease.metadata.resourceVersion === resourceVersion ? known : undefined;
      if (leak === 'unknown') {
        if (before !== undefined) unknown.push(before);
      } else if (leak !== undefined) {
        found.push({ lease, leak, firstSeenAt: before?.leak === leak ? before.firstSeenAt : now });
      }
      yield;
    }
    this.known.clear();
    for (const candidate of [...found, ...unknown]) this.known.set(candidate.lease.metadata.uid, candidate);
    const due = found.filter(({ firstSeenAt }) => now - firstSeenAt >= afterMs);
    return due.sort((a, b) => a.firstSeenAt - b.firstSeenAt).slice(0, maxChecks);
  }
}
