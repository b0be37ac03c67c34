import type { PingResult, WireEvent } from '../wire-events.js';

/** When the steps of a move began, since the epoch. */
export interface StepTimes {
  readonly pinged: number;
  /** CNI ADD of the target. */
  readonly added: number;
  /** The target's interface loses its addresses. */
  readonly prepared: number;
  /** The guest leaves the source. */
  readonly moved: number;
}

/** Echo requests without an answer, by the step in which they were sent. */
export interface Losses {
  readonly before: number;
  readonly setUp: number;
  readonly copy: number;
  readonly after: number;
}

/** How often something has changed while the guest was on the source, and from then on. */
export interface Changes {
  readonly before: number;
  readonly after: number;
}

/** @param everyMs between two requests */
export function countLosses({ lossRuns }: PingResult, steps: StepTimes, everyMs: number): Losses {
  const losses = { before: 0, setUp: 0, copy: 0, after: 0 };
  for (const { atMs, count } of lossRuns) {
    for (let n = 0; n < count; n++) losses[stepOf(steps.pinged + atMs + everyMs * n, steps)]++;
  }
  return losses;
}

function stepOf(atMs: number, { added, prepared, moved }: StepTimes): keyof Losses {
  if (atMs < added) return 'before';
  if (atMs < prepared) return 'setUp';
  return atMs < moved ? 'copy' : 'after';
}

/** How often a bridge has seen a MAC address at another port. @param port where it was before */
export function countSwitchMoves(
  sightings: readonly WireEvent[],
  mac: string,
  port: string,
  steps: StepTimes,
): Changes {
  const entries = sightings.flatMap(({ atMs, learnt }) => (learnt?.mac === mac ? [{ atMs, value: learnt.port }] : []));
  return countChanges(entries, port, steps);
}

/** How often a neighbour table has taken another MAC address for an address. @param mac what it was before */
export function countNeighbourMoves(
  sightings: readonly WireEvent[],
  ip: string,
  mac: string,
  steps: StepTimes,
): Changes {
  const entries = sightings.flatMap(({ atMs, neighbour }) =>
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

/** Messages that came in while the target had its addresses, by kind. @param sightings at the switch's port to the target */
export function countMessages(sightings: readonly WireEvent[], { added, prepared }: StepTimes): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { atMs, frame } of sightings) {
    if (!frame || frame.outgoing || atMs < added || atMs >= prepared) continue;
    const kind = `${frame.gratuitous ? 'gratuitous ' : ''}${frame.kind}${frame.probe ? ' (probe)' : ''}`;
    counts[kind] = (counts[kind] ?? 0) + 1;
  }
  return counts;
}
