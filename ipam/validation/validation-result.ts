/** The kind of a refusal, for metrics and logs. */
export type ReviewCheck =
  | 'spec'
  | 'conflict'
  | 'network'
  | 'address-space'
  | 'shrink'
  | 'in-use'
  | 'delegation'
  | 'disagreement'
  | 'rights'
  | 'limit';

export interface ValidationRefusal {
  readonly check: ReviewCheck;
  /** Names the field or the object and the value, and says what to do. */
  readonly message: string;
}

/** The result of a review. The object is allowed if there are no refusals. */
export interface ValidationResult {
  readonly refusals: readonly ValidationRefusal[];
  /** About allowed settings that may be mistakes. */
  readonly warnings: readonly string[];
}

export const ALLOWED: ValidationResult = { refusals: [], warnings: [] };

export function refuse(...refusals: readonly ValidationRefusal[]): ValidationResult {
  return { refusals, warnings: [] };
}
