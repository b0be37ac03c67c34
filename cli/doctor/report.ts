import type { Output } from '../output.js';
import type { Line } from '../terminal.js';
import { isError } from './diagnose.js';
import type { Finding } from './finding.js';

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

export function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`;
}
