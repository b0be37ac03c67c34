import type { Metrics } from '../../process/metrics.js';

/** What is measured of requests of the CNI plugin. */
export interface RequestMetrics {
  /** A request came in. */
  began(): void;
  /** @param command empty where it could not be read; @param code of the CNI error; 0: success */
  ended(command: string, code: number, seconds: number): void;
}

export interface PendingDeleteMetrics {
  /** Notes of deletions that are to be made good. */
  pending(count: number): void;
}

const SECONDS = [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 100];

/** To be made once in a process: its metrics have their names for themselves. */
export function createAgentMetrics(
  metrics: Pick<Metrics, 'gauge' | 'histogram'>,
): RequestMetrics & PendingDeleteMetrics {
  const requests = metrics.histogram('cni_request_seconds', 'Requests of the CNI plugin, by command and error code.', {
    labels: ['command', 'code'],
    buckets: SECONDS,
  });
  const inFlight = metrics.gauge('cni_requests_in_flight', 'Requests of the CNI plugin that are not answered yet.');
  const notes = metrics.gauge('cni_deletion_notes', 'Deletions that could not be made good yet.');
  return {
    began: () => inFlight.inc(),
    ended: (command, code, seconds) => {
      inFlight.dec();
      requests.observe({ command, code }, seconds);
    },
    pending: (count) => notes.set(count),
  };
}
