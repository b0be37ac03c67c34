import type { Metrics } from '../../process/metrics.js';
import type { AllocationPurpose, ClaimStep } from './step.js';

/** What is measured of the work on claims. */
export interface ClaimMetrics {
  countStep(step: Exclude<ClaimStep['kind'], 'none'>): void;
  /** `lost`: somebody was faster. */
  countAllocation(purpose: AllocationPurpose, outcome: 'taken' | 'lost' | 'refused'): void;
  countReleases(count: number): void;
  setWaiting(count: number): void;
}

/** To be made once in a process: its metrics have their names for themselves. */
export function createClaimMetrics(metrics: Pick<Metrics, 'counter' | 'gauge'>): ClaimMetrics {
  const steps = metrics.counter('ipam_claim_steps_total', 'What was done about claims.', ['step']);
  const allocations = metrics.counter(
    'ipam_claim_takes_total',
    'Addresses that were to be taken, by why and what came of it.',
    ['purpose', 'outcome'],
  );
  const releases = metrics.counter('ipam_claim_releases_total', 'Leases of claims that were released.');
  const waitingClaims = metrics.gauge('ipam_claims_waiting', 'Claims that wait for an address.');
  return {
    countStep: (step) => steps.inc({ step }),
    countAllocation: (purpose, outcome) => allocations.inc({ purpose, outcome }),
    countReleases: (count) => releases.inc(count),
    setWaiting: (count) => waitingClaims.set(count),
  };
}
