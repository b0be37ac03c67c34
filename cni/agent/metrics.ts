import type { Metrics } from '../../process/metrics.js';

/** Metrics of the CNI requests. */
export interface RequestMetrics {
  /** Counts a request that came in. */
  began(): void;
  /** Counts an answered request. @param command `unknown` if it could not be read @param code of the CNI error; 0: success */
  ended(command: string, code: number, seconds: number): void;
}

export interface PendingDeleteMetrics {
  /** Sets the number of pending deletes. */
  pending(count: number): void;
}

const SECONDS = [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 100];

/** Creates the metrics. Call it once in a process, because metric names are unique. */
export function createAgentMetrics(
  metrics: Pick<Metrics, 'gauge' | 'histogram'>,
): RequestMetrics & PendingDeleteMetrics {
  const requests = metrics.histogram(
    'cni_request_duration_seconds',
    'Duration of requests of the CNI plugin, by command and error code (0: success).',
    { labels: ['command', 'code'], buckets: SECONDS },
  );
  const inFlight = metrics.gauge(
    'cni_requests_in_flight',
    'Number of requests of the CNI plugin that are not answered yet.',
  );
  const notes = metrics.gauge('cni_pending_deletes', 'Number of DEL requests that could not be carried out yet.');
  return {
    began: () => inFlight.inc(),
    ended: (command, code, seconds) => {
      inFlight.dec();
      requests.observe({ command, code }, seconds);
    },
    pending: (count) => notes.set(count),
  };
}
