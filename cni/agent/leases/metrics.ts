import type { Metrics } from '../../../process/metrics.js';

/** What is done to a lease, and why it is. */
export type WriteKind = 'create' | 'take' | 'move' | 'release';

/** Where an address for a pod that asked for none was found: kept for its MAC address, in a block of the node, by guessing, or among what the leases leave free. */
export type PickSource = 'kept' | 'block' | 'blind' | 'watched';

/** What is measured of the leases of pods. */
export interface PodLeaseMetrics {
  /** @param attempts to get one address, until there was one or none could be had */
  allocated(attempts: number): void;
  picked(source: PickSource): void;
  /** `lost`: somebody else was faster. */
  wrote(kind: WriteKind, outcome: 'done' | 'lost' | 'failed'): void;
  held(count: number): void;
  /** A lease of a pod that is gone was released. */
  swept(): void;
}

/** To be made once in a process: its metrics have their names for themselves. */
export function createPodLeaseMetrics(metrics: Pick<Metrics, 'counter' | 'gauge' | 'histogram'>): PodLeaseMetrics {
  const attempts = metrics.histogram('agent_reserve_attempts', 'Attempts to get one address for a pod.', {
    buckets: [1, 2, 3, 4, 8, 16, 32, 64],
  });
  const picks = metrics.counter('agent_picks_total', 'Addresses that were picked for pods, by where they were found.', [
    'source',
  ]);
  const writes = metrics.counter('agent_lease_writes_total', 'Writes of leases of pods, by what they do and outcome.', [
    'write',
    'outcome',
  ]);
  const held = metrics.gauge('agent_leases_held', 'Leases that are held on this node.');
  const swept = metrics.counter('agent_leases_swept_total', 'Leases of pods that are gone that were released.');
  return {
    allocated: (count) => attempts.observe(count),
    picked: (source) => picks.inc({ source }),
    wrote: (write, outcome) => writes.inc({ write, outcome }),
    held: (count) => held.set(count),
    swept: () => swept.inc(),
  };
}
