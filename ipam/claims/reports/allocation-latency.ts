import type { IPAMClaim } from '../../../api/ipam-claim.js';
import type { Clock } from '../../../kube/clock.js';
import type { ObjectChange } from '../../../kube/informer.js';

/** A claim that is older than this when it is first seen was not seen being created: a list or a late watch showed it. */
const MAX_AGE_WHEN_SEEN_MS = 10_000;

/**
 * Measures the time from the creation of a claim to the status that shows its addresses. Only claims are measured that this leader saw being created:
 * creationTimestamp has whole seconds of another machine's clock, so times count from the moment that the watch showed the claim.
 */
export class AllocationLatency {
  readonly #clock: Pick<Clock, 'now' | 'wall'>;
  readonly #observe: (seconds: number) => void;
  /** By UID: when the claim was seen. Claims that have addresses, or are gone, are not here. */
  readonly #seenAt = new Map<string, number>();
  #isLeading = false;

  constructor(clock: Pick<Clock, 'now' | 'wall'>, observe: (seconds: number) => void) {
    this.#clock = clock;
    this.#observe = observe;
  }

  start(): void {
    this.#isLeading = true;
  }

  stop(): void {
    this.#isLeading = false;
    this.#seenAt.clear();
  }

  onClaimChange({ type, object }: ObjectChange<IPAMClaim>): void {
    const { uid = '', creationTimestamp = '' } = object.metadata;
    if (type === 'removed') this.#seenAt.delete(uid);
    if (type !== 'added' || !this.#isLeading || object.status?.ips !== undefined) return;
    const age = this.#clock.wall() - Date.parse(creationTimestamp);
    if (age <= MAX_AGE_WHEN_SEEN_MS) this.#seenAt.set(uid, this.#clock.now());
  }

  /** The status of the claim shows addresses. */
  onAllocated({ metadata: { uid = '' } }: Pick<IPAMClaim, 'metadata'>): void {
    const seenAt = this.#seenAt.get(uid);
    if (seenAt === undefined) return;
    this.#seenAt.delete(uid);
    this.#observe((this.#clock.now() - seenAt) / 1000);
  }
}
