import { Counter, Gauge, Histogram, Registry, collectDefaultMetrics } from 'prom-client';
import type { KubeMetrics } from '../kube/metrics.js';

/** Sampling interval of the event loop's delay: short enough to see a stall, long enough to stay idle. */
const EVENT_LOOP_PRECISION_MS = 20;
const REQUEST_SECONDS = [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15];

/** An HTTPS server with a certificate. */
type CertificateUser = 'webhook' | 'ipam' | 'metrics';

/** Creates the metrics of a process. All names begin with `holdfast_` and are unique. */
export class Metrics {
  readonly registry = new Registry();
  readonly kube: KubeMetrics;
  readonly #leading: Gauge<'name'>;
  readonly #expirations: Gauge<'server' | 'certificate'>;

  constructor() {
    this.kube = bindKubeMetrics(this);
    this.#leading = this.gauge('leading_status', '1 if this process holds the Lease of this name, else 0.', ['name']);
    this.#expirations = this.gauge(
      'certificate_expiration_timestamp_seconds',
      'When a certificate of an HTTPS server expires, in seconds since the epoch.',
      ['server', 'certificate'],
    );
  }

  /** @param name of the Lease */
  setLeading(name: string, leads: boolean): void {
    this.#leading.set({ name }, leads ? 1 : 0);
  }

  /** @param at in ms since the epoch */
  setExpiration(server: CertificateUser, certificate: string, at: number): void {
    this.#expirations.set({ server, certificate }, at / 1000);
  }

  counter<Label extends string = never>(name: string, help: string, labels: readonly Label[] = []): Counter<Label> {
    return new Counter({ name: prefixed(name), help, labelNames: labels, registers: [this.registry] });
  }

  gauge<Label extends string = never>(name: string, help: string, labels: readonly Label[] = []): Gauge<Label> {
    return new Gauge({ name: prefixed(name), help, labelNames: labels, registers: [this.registry] });
  }

  histogram<Label extends string = never>(
    name: string,
    help: string,
    options: HistogramOptions<Label>,
  ): Histogram<Label> {
    const { labels = [], buckets } = options;
    return new Histogram({ name: prefixed(name), help, labelNames: labels, buckets, registers: [this.registry] });
  }
}

interface HistogramOptions<Label extends string> {
  readonly labels?: readonly Label[];
  /** Upper bounds; seconds for a duration. */
  readonly buckets: number[];
}

/** The metrics of a process, with those of Node.js itself (CPU, memory, event loop). */
export function createMetrics(process: string, version: string): Metrics {
  const metrics = new Metrics();
  collectDefaultMetrics({ register: metrics.registry, eventLoopMonitoringPrecision: EVENT_LOOP_PRECISION_MS });
  const info = metrics.gauge('build_info', 'Always 1; the labels name the process and its version.', [
    'process',
    'version',
  ]);
  info.set({ process, version }, 1);
  return metrics;
}

function prefixed(name: string): string {
  return `holdfast_${name}`;
}

function bindKubeMetrics(metrics: Metrics): KubeMetrics {
  const requests = metrics.histogram('kube_request_duration_seconds', 'Duration of HTTP requests to the API server.', {
    labels: ['method', 'code'],
    buckets: REQUEST_SECONDS,
  });
  const lists = metrics.histogram('kube_list_duration_seconds', 'Duration of complete lists of a kind, all pages.', {
    labels: ['resource'],
    buckets: REQUEST_SECONDS,
  });
  const watchEnds = metrics.counter('kube_watch_ends_total', 'Watches that ended, by reason.', ['resource', 'reason']);
  const progress = bindWatchProgress(metrics);
  const handlerFailures = metrics.counter(
    'kube_handler_failures_total',
    'Watched objects for which a handler failed.',
    ['resource'],
  );
  const depth = metrics.gauge('queue_depth', 'Keys that wait for a worker.', ['queue']);
  const syncs = metrics.histogram('sync_duration_seconds', 'Duration of syncs of one key, by result.', {
    labels: ['loop', 'result'],
    buckets: REQUEST_SECONDS,
  });
  const droppedEvents = metrics.counter('kube_events_dropped_total', 'Events that were not written, by reason.', [
    'reason',
  ]);
  return {
    requested: (method, code, seconds) => requests.observe({ method, code }, seconds),
    listed: (resource, seconds) => lists.observe({ resource }, seconds),
    watchEnded: (resource, reason) => watchEnds.inc({ resource, reason }),
    watching: progress,
    handlerFailed: (resource) => handlerFailures.inc({ resource }),
    queueDepth: (queue, keys) => depth.set({ queue }, keys),
    synced: (loop, result, seconds) => syncs.observe({ loop, result }, seconds),
    eventDropped: (reason) => droppedEvents.inc({ reason }),
  };
}

/** A process may watch one kind several times: the gauge shows the watch that is furthest behind. */
function bindWatchProgress({ registry }: Metrics): KubeMetrics['watching'] {
  const watches = new Map<string, Set<() => number | undefined>>();
  new Gauge({
    name: prefixed('kube_watch_last_progress_timestamp_seconds'),
    help: 'When the API server last sent a list, event or bookmark of a kind, in seconds since the epoch.',
    labelNames: ['resource'],
    registers: [registry],
    collect() {
      this.reset();
      for (const [resource, readers] of watches) {
        const times = [...readers].flatMap((read) => read() ?? []);
        if (times.length > 0) this.set({ resource }, Math.min(...times) / 1000);
      }
    },
  });
  return (resource, progressedAt) => {
    const readers = watches.get(resource) ?? new Set();
    watches.set(resource, readers.add(progressedAt));
    return () => readers.delete(progressedAt);
  };
}
