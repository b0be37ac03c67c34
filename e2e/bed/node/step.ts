/** What a state machine says about an object: a change to make and why, or what it waits for. */
export type Step<Change> = ChangeStep<Change> | WaitStep;

export interface ChangeStep<Change> {
  readonly next: Change;
  readonly reason: string;
}

export interface WaitStep {
  readonly waitFor: string;
  /** Without it only an event can change the answer. */
  readonly recheckAfterMs?: number;
}

export function change<Change>(next: Change, reason: string): ChangeStep<Change> {
  return { next, reason };
}

export function waitFor(waitFor: string, lookAgainInMs?: number): WaitStep {
  return lookAgainInMs === undefined ? { waitFor } : { waitFor, recheckAfterMs: lookAgainInMs };
}

/** metav1.Time: RFC 3339 without a fraction. */
export function timestamp(now: number): string {
  return new Date(now).toISOString().replace(/\.\d+Z$/, 'Z');
}
