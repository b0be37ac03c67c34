import type { AllocationReason } from '../../api/names.js';
import type { Metrics } from '../../process/metrics.js';
import type { AllocationPurpose, ClaimStep } from './step.js';

/** What became of the probe of an address. */
export type ProbeOutcome = 'free' | 'self' | 'taken' | 'skipped';

/** Metrics of the claim reconciler. */
export interface ClaimMetrics {
  countStep(step: Exclude<ClaimStep['kind'], 'none'>): void;
  /** `lost`: another writer got the address first. */
  countAllocation(purpose: AllocationPurpose, outcome: 'allocated' | 'lost' | 'refused'): void;
  countRefusal(reason: AllocationReason): void;
  countReleases(count: number): void;
  countProbe(outcome: ProbeOutcome): void;
  setWaiting(count: number): void;
  /** Removes what only the leader reports. */
  clear(): void;
}

/** Call it once in a process, because a metric name can be registered only once. */
export function createClaimMetrics(metrics: Pick<Metrics, 'counter' | 'gauge'>): ClaimMetrics {
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
    countStep: (step) => steps.inc({ step }),
    countAllocation: (purpose, outcome) => allocations.inc({ purpose, outcome }),
    countRefusal: (reason) => refusals.inc({ reason }),
    countReleases: (count) => releases.inc(count),
    countProbe: (outcome) => probes.inc({ result: outcome }),
    setWaiting: (count) => waitingClaims.set(count),
    clear: () => waitingClaims.remove(),
  };
}
