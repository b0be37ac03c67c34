import type { Metrics } from '../../process/metrics.js';
import type { Purpose, Step } from './step.js';

/** What is measured of the work on claims. */
export interface ClaimMetrics {
  stepped(step: Exclude<Step['kind'], 'none'>): void;
  /** `lost`: somebody was faster. */
  took(purpose: Purpose, outcome: 'taken' | 'lost' | 'refused'): void;
  released(count: number): void;
  waiting(count: number): void;
}

/** To be made once in a process: its metrics have their names for themselves. */
export function createClaimMetrics(metrics: Pick<Metrics, 'counter' | 'gauge'>): ClaimMetrics {
  const steps = metrics.counter('ipam_claim_steps_total', 'What was done about claims.', ['step']);
  const takes = metrics.counter(
    'ipam_claim_takes_total',
    'Addresses that were to be taken, by why and what came of it.',
    ['purpose', 'outcome'],
  );
  const releases = metrics.counter('ipam_claim_releases_total', 'Leases of claims that were released.');
  const waiters = metrics.gauge('ipam_claims_waiting', 'Claims that wait for an address.');
  return {
    stepped: (step) => steps.inc({ step }),
    took: (purpose, outcome) => takes.inc({ purpose, outcome }),
    released: (count) => releases.inc(count),
    waiting: (count) => waiters.set(count),
  };
}
