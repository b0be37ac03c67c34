/** What a review refuses for: one word per kind of refusal, for metrics and logs. */
export type ReviewCheck =
  'spec' | 'conflict' | 'network' | 'address-space' | 'shrink' | 'in-use' | 'delegation' | 'disagreement' | 'rights';

export interface ReviewRefusal {
  readonly check: ReviewCheck;
  /** Names the field or the object, the value, and what to do. */
  readonly message: string;
}

/** What a review says: it allows where nothing is refused. */
export interface ReviewResult {
  readonly refusals: readonly ReviewRefusal[];
  /** Of what is allowed and may not be meant. */
  readonly warnings: readonly string[];
}

export const ALLOWED: ReviewResult = { refusals: [], warnings: [] };

export function refuse(...refusals: readonly ReviewRefusal[]): ReviewResult {
  return { refusals, warnings: [] };
}
