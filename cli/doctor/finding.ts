/** `error`: something does not work. `warning`: it may stop working, or somebody should decide. */
export type Severity = 'error' | 'warning';

/** Something that is wrong with the cluster. */
export interface Finding {
  readonly severity: Severity;
  /** The name of the check, which never changes. */
  readonly check: string;
  /** As kubectl writes it: `AddressPool blue.lab`. */
  readonly object: string;
  readonly problem: string;
  /** What to do. */
  readonly remedy: string;
}

export function errorOf(check: string, object: string, problem: string, remedy: string): Finding {
  return { severity: 'error', check, object, problem, remedy };
}

export function warningOf(check: string, object: string, problem: string, remedy: string): Finding {
  return { severity: 'warning', check, object, problem, remedy };
}
