import type { PingResult, WireEvent } from '../wire-events.js';

/** Start times of the steps of a migration, in milliseconds since the epoch. */
export interface StepTimes {
  readonly pinged: number;
  /** CNI ADD of the target. */
  readonly added: number;
  /** virt-handler removes the addresses of the target's interface. */
  readonly prepared: number;
  /** The guest leaves the source. */
  readonly moved: number;
}

/** Echo requests without a reply, by the step in which they were sent. */
export interface Losses {
  readonly before: number;
  readonly setUp: number;
  readonly copy: number;
  readonly after: number;
}

/** Numbers of changes while the guest was on the source and afterwards. */
export interface Changes {
  readonly before: number;
  readonly after: number;
}

/** A request that was sent so long before the guest left may have found nobody, on a busy machine. */
const UNDER_WAY_MS = 100;

/** @param everyMs between two requests */
export function countLosses({ lossRuns }: PingResult, steps: StepTimes, everyMs: number): Losses {
  const losses = { before: 0, setUp: 0, copy: 0, after: 0 };
  const answered = { ...steps, moved: steps.moved - UNDER_WAY_MS };
  for (const { atMs, count } of lossRuns) {
    for (let n = 0; n < count; n++) losses[stepOf(steps.pinged + atMs + everyMs * n, answered)]++;
  }
  return losses;
}

function stepOf(atMs: number, { added, prepared, moved }: StepTimes): keyof Losses {
  if (atMs < added) return 'before';
  if (atMs < prepared) return 'setUp';
  return atMs < moved ? 'copy' : 'after';
}

/** Counts how often a bridge has seen a MAC address at another port. @param port the port before */
export function countSwitchMoves(events: readonly WireEvent[], mac: string, port: string, steps: StepTimes): Changes {
  const entries = events.flatMap(({ atMs, learnt }) => (learnt?.mac === mac ? [{ atMs, value: learnt.port }] : []));
  return countChanges(entries, port, steps);
}

/** Counts how often the MAC address of a neighbour table entry has changed. @param mac the MAC address before */
export function countNeighbourMoves(events: readonly WireEvent[], ip: string, mac: string, steps: StepTimes): Changes {
  const entries = events.flatMap(({ atMs, neighbour }) =>
    neighbour?.ip === ip && neighbour.mac !== '' ? [{ atMs, value: neighbour.mac }] : [],
  );
  return countChanges(entries, mac, steps);
}

function countChanges(entries: readonly { atMs: number; value: string }[], first: string, steps: StepTimes): Changes {
  const changes = { before: 0, after: 0 };
  let last = first;
  for (const { atMs, value } of entries) {
    if (atMs >= steps.added && value !== last) changes[atMs < steps.moved ? 'before' : 'after']++;
    last = value;
  }
  return changes;
}

/** Counts messages by kind while the target had its addresses. @param events at the switch's port to the target */
export function countMessages(events: readonly WireEvent[], { added, prepared }: StepTimes): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { atMs, frame } of events) {
    if (!frame || frame.outgoing || atMs < added || atMs >= prepared) continue;
    const kind = `${frame.gratuitous ? 'gratuitous ' : ''}${frame.kind}${frame.probe ? ' (probe)' : ''}`;
    counts[kind] = (counts[kind] ?? 0) + 1;
  }
  return counts;
}
