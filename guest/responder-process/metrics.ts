import type { Metrics } from '../../process/metrics.js';
import { type HelperCounts, type WireObservationKind, OBSERVATION_KINDS } from '../responder-tables/protocol.js';

/** Series of one counter: the helper reads packets of guests, and its labels must not fill the memory. */
const MAX_SERIES = 256;

export interface ResponderMetrics {
  counted(counts: HelperCounts): void;
  observed(kind: WireObservationKind): void;
  /** @param leftOut guests without an entry because of the limit */
  table(entries: number, leftOut: number): void;
  /** @param freshForMs 0: stale */
  fresh(freshForMs: number): void;
  connected(isConnected: boolean): void;
  probed(result: ProbeResult): void;
}

/** Packets that came faster than holdfast-packets reads them: see `HoldfastResponderLosesPackets`. */
const LOST = 'lost';

/** `failed`: nothing could be asked or written. Probes of which another responder wrote the result do not count. */
const PROBE_RESULTS = ['free', 'self', 'taken', 'failed'] as const;
type ProbeResult = (typeof PROBE_RESULTS)[number];

export function createResponderMetrics(metrics: Pick<Metrics, 'gauge' | 'counter'>, pool: string): ResponderMetrics {
  const exchanges = metrics.counter(
    'responder_exchanges_total',
    'Messages of guests by protocol, kind and answer; answer "none": not answered.',
    ['pool', 'protocol', 'message', 'answer'],
  );
  const dropped = metrics.counter(
    'responder_dropped_packets_total',
    'Packets that the responder did not read, by reason.',
    ['pool', 'reason'],
  );
  const observations = metrics.counter(
    'responder_observations_total',
    'What the responder saw on the network, by kind: "declined" addresses, address "conflict", other DHCP "server", "router", "overloaded".',
    ['pool', 'kind'],
  );
  const entries = metrics.gauge('responder_table_entries', 'Guests that the responder answers.', ['pool']);
  const leftOut = metrics.gauge(
    'responder_guests_left_out',
    'Guests that the responder does not answer because its table is full.',
    ['pool'],
  );
  const stale = metrics.gauge(
    'responder_table_stale_status',
    '1 while the table is older than --max-staleness, because the API server or guest is away, or the pool is invalid, else 0.',
    ['pool'],
  );
  const connected = metrics.gauge(
    'responder_connected_status',
    '1 while holdfast-packets works with the table, else 0.',
    ['pool'],
  );
  const probes = metrics.counter(
    'responder_probes_total',
    'Addresses that the responder probed for ipam, by result: "free", "self" (the guest itself answered), "taken", "failed".',
    ['pool', 'result'],
  );
  const isKnown = boundedSet(MAX_SERIES);
  // the first increase of a counter is seen only if it was 0 before
  for (const kind of OBSERVATION_KINDS) observations.inc({ pool, kind }, 0);
  dropped.inc({ pool, reason: LOST }, 0);
  for (const result of PROBE_RESULTS) probes.inc({ pool, result }, 0);
  return {
    counted: (counts) => {
      for (const { protocol, message, answer, count } of counts.exchanges)
        if (isKnown(`${protocol} ${message} ${answer}`)) exchanges.inc({ pool, protocol, message, answer }, count);
      for (const [reason, count] of counts.dropped) if (isKnown(reason)) dropped.inc({ pool, reason }, count);
    },
    observed: (kind) => observations.inc({ pool, kind }),
    table: (served, beyond) => {
      entries.set({ pool }, served);
      leftOut.set({ pool }, beyond);
    },
    fresh: (freshForMs) => stale.set({ pool }, freshForMs > 0 ? 0 : 1),
    probed: (result) => probes.inc({ pool, result }),
    connected: (isConnected) => connected.set({ pool }, isConnected ? 1 : 0),
  };
}

/** Returns a function that is true for the first `most` different keys. */
function boundedSet(most: number): (key: string) => boolean {
  const known = new Set<string>();
  return (key) => known.has(key) || (known.size < most && known.add(key).has(key));
}
