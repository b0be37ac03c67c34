/** What a review refuses for: one word per kind of refusal, for metrics and logs. */
export type Check =
  'spec' | 'conflict' | 'network' | 'address-space' | 'shrink' | 'in-use' | 'delegation' | 'disagreement' | 'rights';

export interface Refusal {
  readonly check: Check;
  /** Names the field or the object, the value, and what to do. */
  readonly message: string;
}

/** What a review says: it allows where nothing is refused. */
export interface Verdict {
  readonly refusals: readonly Refusal[];
  /** Of what is allowed and may not be meant. */
  readonly warnings: readonly string[];
}

export const ALLOWED: Verdict = { refusals: [], warnings: [] };

export function refuse(...refusals: readonly Refusal[]): Verdict {
  return { refusals, warnings: [] };
}
