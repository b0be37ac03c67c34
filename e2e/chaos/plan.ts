import type { Random } from '../../kube/clock.js';
import type { ElectedRole } from './fleet.js';

/** The kinds of faults, and how often each is chosen relative to the others. */
const WEIGHTS = {
  'leader killed': 4,
  'leader stopped past its lease': 2,
  'replica killed': 2,
  'webhook killed': 2,
  'webhook restarted': 2,
  'agent killed': 2,
  'agent restarted': 2,
  'API server stopped': 2,
  'API server killed': 2,
  'etcd compacted': 1,
  'etcd compacted past stopped watches': 1,
  'certificate renewed': 2,
  'CA replaced': 1,
} as const;

export type RandomFaultKind = keyof typeof WEIGHTS;
/** Clocks are stepped only on request, because it needs libfaketime. */
export type FaultKind = RandomFaultKind | 'clock stepped';
export const RANDOM_FAULT_KINDS = Object.keys(WEIGHTS) as RandomFaultKind[];

export const ELECTED: readonly ElectedRole[] = ['controller', 'ipam', 'capacity'];

/** A fault as the seed chooses it, before its target is known. */
export interface PlannedFault {
  readonly kind: FaultKind;
  /** Of faults that hit a leader. */
  readonly role: ElectedRole;
  /** In [0, 1): chooses among the processes that may be hit. */
  readonly choice: number;
  /** In [0, 1): how long it lasts, between the limits of its kind. */
  readonly length: number;
  /** From the recovery of the fault before. */
  readonly pauseMs: number;
}

/** Chooses faults without end. The same numbers give the same faults. */
export function* planFaults(random: Random): Generator<PlannedFault, never> {
  const total = Object.values(WEIGHTS).reduce((sum, weight) => sum + weight, 0);
  for (;;) {
    yield {
      kind: pick(random() * total),
      role: ELECTED[Math.floor(random() * ELECTED.length)]!,
      choice: random(),
      length: random(),
      pauseMs: 5_000 + random() * 7_000,
    };
  }
}

function pick(at: number): RandomFaultKind {
  let left = at;
  for (const kind of RANDOM_FAULT_KINDS) {
    left -= WEIGHTS[kind];
    if (left < 0) return kind;
  }
  return RANDOM_FAULT_KINDS.at(-1)!;
}
