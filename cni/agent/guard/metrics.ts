import type { Metrics } from '../../../process/metrics.js';
import type { GuardNote } from './guard-notes.js';

const LABELS = ['pool', 'nad_namespace', 'mode'] as const;
type PortLabels = Readonly<Record<(typeof LABELS)[number], string>>;

/**
 * Creates the metrics. Call it once in a process, because metric names are unique. Tenants may make many pools, so those that are derived from NADs of one
 * namespace have their series together. A node has only those of its ports.
 */
export function createGuardMetrics(metrics: Pick<Metrics, 'counter' | 'gauge'>) {
  const ports = metrics.gauge('guard_ports', 'Ports with a guard, by whether its rules are applied, and counted.', [
    ...LABELS,
    'state',
  ]);
  const drops = metrics.counter(
    'guard_dropped_packets_total',
    'Packets that guards dropped because they are not of the claim, or would drop (mode Observe), by reason.',
    [...LABELS, 'reason'],
  );
  const counted = metrics.gauge('guard_counters_status', '1 if the counters of guards are read on this node, else 0.');
  /** The reasons that were counted, by the labels of their ports. */
  const counting = new Map<string, Set<string>>();
  return {
    /** Sets the guarded ports of the node, and removes the series of pools that have none any more. */
    ports: (notes: readonly GuardNote[]) => {
      ports.reset();
      const current = new Set<string>();
      for (const note of notes) {
        const labels = labelsOf(note);
        ports.inc({ ...labels, state: note.state });
        current.add(JSON.stringify(labels));
      }
      for (const [key, reasons] of counting) {
        if (current.has(key)) continue;
        counting.delete(key);
        for (const reason of reasons) drops.remove({ ...(JSON.parse(key) as PortLabels), reason });
      }
    },
    /** Whether the counters can be read. */
    counted: (isCounted: boolean) => counted.set(isCounted ? 1 : 0),
    dropped: (note: GuardNote, reason: string, packets: number) => {
      const labels = labelsOf(note);
      const key = JSON.stringify(labels);
      counting.set(key, (counting.get(key) ?? new Set()).add(reason));
      drops.inc({ ...labels, reason }, packets);
    },
  };
}

export type GuardMetrics = ReturnType<typeof createGuardMetrics>;

function labelsOf({ mode, subject: { pool, nadNamespace } }: GuardNote): PortLabels {
  return { pool: nadNamespace === undefined ? pool : '', nad_namespace: nadNamespace ?? '', mode };
}
