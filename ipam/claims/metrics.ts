import type { IPAMClaim } from '../../api/ipam-claim.js';
import type { AllocationReason } from '../../api/names.js';
import type { Clock } from '../../kube/clock.js';
import type { ObjectChange } from '../../kube/informers/informer.js';
import type { Metrics } from '../../process/metrics.js';
import type { AllocationPurpose, ClaimStep } from './step.js';

/** What became of the probe of an address. */
type ProbeOutcome = 'free' | 'self' | 'taken' | 'skipped';

export type ClaimMetrics = ReturnType<typeof createClaimMetrics>;

/** Creates the metrics of the claim reconciler. Call it once in a process, because a metric name can be registered only once. */
export function createClaimMetrics(metrics: Pick<Metrics, 'counter' | 'gauge'>) {
  const steps = metrics.counter('ipam_claim_steps_total', 'Steps of the claim reconciler, by step.', ['step']);
  const allocations = metrics.counter(
    'ipam_claim_allocations_total',
    'Allocations for claims, by purpose and outcome.',
    ['purpose', 'outcome'],
  );
  const refusals = metrics.counter(
    'ipam_claim_refusals_total',
    'Allocations for claims that were refused, by reason of the condition IPsAllocated.',
    ['reason'],
  );
  const releases = metrics.counter('ipam_claim_releases_total', 'Released leases of claims.');
  const probes = metrics.counter(
    'ipam_probes_total',
    'Addresses that were to be probed before claims showed them, by result: free, self (the guest itself answered), taken (another host answered) or skipped.',
    ['result'],
  );
  const waitingClaims = metrics.gauge(
    'ipam_claims_waiting',
    'Claims that wait for an address. Those that wait only to leave a draining range are not counted.',
  );
  return {
    countStep: (step: Exclude<ClaimStep['kind'], 'none'>) => steps.inc({ step }),
    /** `lost`: another writer got the address first. */
    countAllocation: (purpose: AllocationPurpose, outcome: 'allocated' | 'lost' | 'refused') =>
      allocations.inc({ purpose, outcome }),
    countRefusal: (reason: AllocationReason) => refusals.inc({ reason }),
    countReleases: (count: number) => releases.inc(count),
    countProbe: (outcome: ProbeOutcome) => probes.inc({ result: outcome }),
    setWaiting: (count: number) => waitingClaims.set(count),
    /** Removes what only the leader reports. */
    clear: () => waitingClaims.remove(),
  };
}

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
