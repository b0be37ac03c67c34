import type { Metrics } from '../../process/metrics.js';

const SECONDS = [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 100];

/** Creates the metrics. Call it once in a process, because metric names are unique. */
export function createAgentMetrics(metrics: Pick<Metrics, 'gauge' | 'histogram'>) {
  const requests = metrics.histogram(
    'cni_request_duration_seconds',
    'Duration of requests of the CNI plugin, by command and error code (0: success).',
    { labels: ['command', 'code'], buckets: SECONDS },
  );
  // the first success is seen only if the count was 0 before
  requests.zero({ command: 'ADD', code: 0 });
  const inFlight = metrics.gauge(
    'cni_requests_in_flight',
    'Number of requests of the CNI plugin that are not answered yet.',
  );
  const notes = metrics.gauge('cni_pending_deletes', 'Number of DEL requests that could not be carried out yet.');
  return {
    /** Counts a request that came in. */
    began: () => inFlight.inc(),
    /** Counts an answered request. @param command `unknown` if it could not be read @param code of the CNI error; 0: success */
    ended: (command: string, code: number, seconds: number) => {
      inFlight.dec();
      requests.observe({ command, code }, seconds);
    },
    /** Sets the number of pending deletes. */
    pending: (count: number) => notes.set(count),
  };
}

export type AgentMetrics = ReturnType<typeof createAgentMetrics>;

export type WriteKind = 'create' | 'take' | 'move' | 'release';

/** How an address was found for a pod that requested none: sticky for its MAC address, in a block, released by the node, at random, or by the watch. */
export type PickSource = 'kept' | 'block' | 'released' | 'blind' | 'watched';

/** Creates the metrics. Call it once in a process, because metric names are unique. */
export function createPodLeaseMetrics(metrics: Pick<Metrics, 'counter' | 'gauge' | 'histogram'>) {
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
  const kept = metrics.gauge(
    'agent_leases_kept',
    'Leases of deleted pods that are kept, because the network namespaces of their sandboxes exist.',
  );
  return {
    /** Counts the search for one address. @param count of attempts until it succeeded or failed */
    allocated: (count: number) => attempts.observe(count),
    picked: (source: PickSource) => picks.inc({ source }),
    /** Counts a write. `lost`: another writer was faster. */
    wrote: (write: WriteKind, outcome: 'done' | 'lost' | 'failed') => writes.inc({ write, outcome }),
    held: (count: number) => held.set(count),
    /** Counts a released lease of a deleted pod. */
    swept: () => swept.inc(),
    /** Sets the number of leases of deleted pods whose sandboxes exist. */
    kept: (count: number) => kept.set(count),
  };
}

export type PodLeaseMetrics = ReturnType<typeof createPodLeaseMetrics>;

/** Creates the metrics. Call it once in a process, because metric names are unique. */
export function createNodeBlockMetrics(metrics: Pick<Metrics, 'counter' | 'gauge'>) {
  const blocks = metrics.gauge('agent_blocks', 'Number of blocks that are assigned to this node, by state.', ['state']);
  const answers = metrics.counter(
    'agent_block_answers_total',
    'Answers to requests to release a block, by answer and outcome.',
    ['answer', 'outcome'],
  );
  return {
    /** Sets the number of blocks that are usable, marked for release or released, and in an unknown state. */
    lent: (counts: Readonly<Record<'usable' | 'marked' | 'other', number>>) => {
      for (const [state, count] of Object.entries(counts)) blocks.set({ state }, count);
    },
    /** Counts an answer. @param answer the value written to the block */
    answered: (answer: string, outcome: 'done' | 'lost' | 'unknown') => answers.inc({ answer, outcome }),
  };
}

export type NodeBlockMetrics = ReturnType<typeof createNodeBlockMetrics>;
