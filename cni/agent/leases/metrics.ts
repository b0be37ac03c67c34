import type { Metrics } from '../../../process/metrics.js';

/** The kinds of writes. */
export type WriteKind = 'create' | 'take' | 'move' | 'release';

/** How an address was found for a pod that requested none: sticky for its MAC address, in a block, at random, or by the watch. */
export type PickSource = 'kept' | 'block' | 'blind' | 'watched';

/** Metrics of the leases of pods. */
export interface PodLeaseMetrics {
  /** Counts the search for one address. @param attempts until it succeeded or failed */
  allocated(attempts: number): void;
  picked(source: PickSource): void;
  /** Counts a write. `lost`: another writer was faster. */
  wrote(kind: WriteKind, outcome: 'done' | 'lost' | 'failed'): void;
  held(count: number): void;
  /** Counts a released lease of a deleted pod. */
  swept(): void;
}

/** Creates the metrics. Call it once in a process, because metric names are unique. */
export function createPodLeaseMetrics(metrics: Pick<Metrics, 'counter' | 'gauge' | 'histogram'>): PodLeaseMetrics {
  const attempts = metrics.histogram('agent_allocation_attempts', 'Attempts to allocate one address to a pod.', {
    buckets: [1, 2, 3, 4, 8, 16, 32, 64],
  });
  const picks = metrics.counter('agent_picks_total', 'Addresses picked for pods, by source.', ['source']);
  const writes = metrics.counter(
    'agent_lease_writes_total',
    'Writes of leases of pods, by kind of write and outcome.',
    ['write', 'outcome'],
  );
  const held = metrics.gauge('agent_leases_held', 'Number of leases held on this node.');
  const swept = metrics.counter(
    'agent_leases_swept_total',
    'Leases released because their pod was deleted without a DEL.',
  );
  return {
    allocated: (count) => attempts.observe(count),
    picked: (source) => picks.inc({ source }),
    wrote: (write, outcome) => writes.inc({ write, outcome }),
    held: (count) => held.set(count),
    swept: () => swept.inc(),
  };
}
