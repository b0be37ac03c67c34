import type { IPAMClaim } from '../api/ipam-claim.js';
import type { Clock } from '../kube/clock.js';
import type { ObjectChange } from '../kube/informers/informer.js';
import type { Metrics } from '../process/metrics.js';
import { AllocationLatency, type ClaimMetrics, createClaimMetrics } from './claims/metrics.js';
import { type PoolMetrics, createPoolMetrics } from './pools/metrics.js';
import { isBeingDeleted } from '../api/meta.js';
import { IPS_ALLOCATED } from '../api/names.js';
import { conditionOf } from '../cluster/claim-conditions.js';

/**
 * Metrics of claims and pools. Those that describe the cluster come from the leader alone, and disappear at the end of its term: two replicas would count
 * everything twice. Create only one per process, because metrics are registered once.
 */
export class IpamMetrics {
  readonly claims: ClaimMetrics;
  readonly pools: PoolMetrics;
  readonly latency: AllocationLatency;
  /** The cached claims by state. */
  readonly #counts: Record<ClaimState, number> = { allocated: 0, deleting: 0, pending: 0, refused: 0 };
  readonly #claimsByState;
  readonly #unleased;
  #isLeading = false;

  /** @param maxDerivedPools how many pools that are derived from NADs have series */
  constructor(metrics: Metrics, clock: Pick<Clock, 'now' | 'wall'>, maxDerivedPools: number) {
    this.claims = createClaimMetrics(metrics);
    this.pools = createPoolMetrics(metrics, maxDerivedPools);
    this.#claimsByState = metrics.gauge('ipam_claims', 'Claims of all IPAMs, by state.', ['state']);
    this.#unleased = metrics.gauge(
      'ipam_unleased_addresses',
      'Addresses of pools that running launchers report and that are not leased to them.',
    );
    const latency = metrics.histogram(
      'ipam_claim_allocation_duration_seconds',
      'Time from the creation of a claim to the status that shows its addresses, for claims that this leader saw being created.',
      { buckets: [0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300] },
    );
    this.latency = new AllocationLatency(clock, (seconds) => latency.observe(seconds));
    this.#removeAll();
  }

  begin(): void {
    this.#isLeading = true;
    this.claims.setWaiting(0);
    this.#reportStates();
    this.latency.start();
  }

  /** Call it when nothing is synced any more. */
  end(): void {
    this.#isLeading = false;
    this.latency.stop();
    this.#removeAll();
  }

  onClaimChange(change: ObjectChange<IPAMClaim>): void {
    const { type, object, before } = change;
    if (before !== undefined) this.#counts[stateOf(before)]--;
    if (type !== 'removed') this.#counts[stateOf(object)]++;
    this.latency.onClaimChange(change);
    this.#reportStates();
  }

  /** Sets the number of addresses that launchers have without a lease. */
  setUnleased(addresses: number): void {
    if (this.#isLeading) this.#unleased.set(addresses);
  }

  #reportStates(): void {
    if (!this.#isLeading) return;
    for (const state of CLAIM_STATES) this.#claimsByState.set({ state }, this.#counts[state]);
  }

  #removeAll(): void {
    this.#claimsByState.reset();
    this.#unleased.remove();
    this.claims.clear();
    this.pools.clear();
  }
}

/** `allocated` and `refused`: what the condition `IPsAllocated` says. `pending`: no IPAM has answered. `deleting`: the claim keeps its addresses until its finalizer is gone. */
const CLAIM_STATES = ['allocated', 'deleting', 'pending', 'refused'] as const;
type ClaimState = (typeof CLAIM_STATES)[number];

function stateOf(claim: IPAMClaim): ClaimState {
  if (isBeingDeleted(claim)) return 'deleting';
  const allocated = conditionOf(claim, IPS_ALLOCATED);
  if (allocated === undefined) return 'pending';
  return allocated.status === 'True' ? 'allocated' : 'refused';
}
