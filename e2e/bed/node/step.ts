/** What a state machine says about an object: a change to make and why, or what it waits for. */
export type Step<Change> = Go<Change> | Wait;

export interface Go<Change> {
  readonly next: Change;
  readonly reason: string;
}

export interface Wait {
  readonly waitFor: string;
  /** Without it only an event can change the answer. */
  readonly lookAgainInMs?: number;
}

export function go<Change>(next: Change, reason: string): Go<Change> {
  return { next, reason };
}

export function wait(waitFor: string, lookAgainInMs?: number): Wait {
  return lookAgainInMs === undefined ? { waitFor } : { waitFor, lookAgainInMs };
}

/** metav1.Time: RFC 3339 without a fraction. */
export function timestamp(now: number): string {
  return new Date(now).toISOString().replace(/\.\d+Z$/, 'Z');
}
