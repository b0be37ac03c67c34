import { type Output, count } from '../output.js';
import type { Line } from '../terminal.js';

/** `error`: something does not work. `warning`: it may stop working, or somebody should decide. */
type Severity = 'error' | 'warning';

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

export function isError({ severity }: Finding): boolean {
  return severity === 'error';
}

/** Formats what the doctor found, and what it could not look at. */
export function reportOf(findings: readonly Finding[], refused: readonly string[]): Output {
  return {
    data: { healthy: !findings.some(isError), findings, refused },
    lines: () => [...findings.flatMap(formatFinding), ...formatRefused(refused), summaryOf(findings, refused)],
  };
}

export function formatFinding({ severity, object, problem, remedy }: Finding): Line[] {
  const style = severity === 'error' ? 'red' : 'yellow';
  return [[{ text: severity.toUpperCase(), style }, ` ${object}`], `  ${problem}`, `  → ${remedy}`];
}

export function formatRefused(refused: readonly string[]): Line[] {
  return refused.map((text) => [{ text: 'NOT CHECKED', style: 'dim' }, ` ${text}`]);
}

function summaryOf(findings: readonly Finding[], refused: readonly string[]): Line {
  const errors = findings.filter(isError).length;
  const warnings = findings.length - errors;
  if (findings.length === 0 && refused.length > 0) return 'nothing is wrong with what was checked';
  if (findings.length === 0) return [{ text: 'nothing is wrong', style: 'green' }];
  return `${count(errors, 'error')}, ${count(warnings, 'warning')}`;
}
