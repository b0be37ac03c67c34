/** The next step for an object: a change with its reason, or what to wait for. */
export type Step<Change> = ChangeStep<Change> | WaitStep;

export interface ChangeStep<Change> {
  readonly next: Change;
  readonly reason: string;
}

export interface WaitStep {
  readonly waitFor: string;
  /** Undefined if only an event can change the answer. */
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
