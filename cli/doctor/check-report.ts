import { ExitCode } from '../exit-code.js';
import { type Output, count } from '../output.js';
import { type Read, isUnread } from '../reader.js';
import type { Line } from '../terminal.js';
import { type Finding, NOTHING_CHECKED, formatFindings, isError, NOT_CHECKED } from './finding.js';

/** What one check of several says, also if all is well. */
export interface CheckReport {
  /** Its name, which never changes. */
  readonly check: string;
  readonly state: 'ok' | 'warning' | 'error' | 'unchecked';
  /** What was found, or why it was not checked. */
  readonly message: string;
  readonly findings: readonly Finding[];
}

const LABELS = { error: 'FAIL', warning: 'WARN' } as const;

export function reportCheck(check: string, message: string, findings: readonly Finding[] = []): CheckReport {
  const state = findings.some(isError) ? 'error' : findings.length > 0 ? 'warning' : 'ok';
  return { check, state, message, findings };
}

/** Says why a check was not made if one of the answers that it needs is missing; else makes it. */
export function checkReads(
  check: string,
  reads: readonly Read<unknown>[],
  run: () => Omit<CheckReport, 'check' | 'state'>,
): CheckReport {
  // a kind that is not served has no objects
  const missing = reads.find((read) => isUnread(read) && read.kind !== 'unserved');
  if (missing !== undefined && missing.kind !== 'found')
    return { check, state: 'unchecked', message: missing.why, findings: [] };
  const { message, findings } = run();
  return reportCheck(check, message, findings);
}

/** The exit code of a command that made checks. */
export function exitCodeOf(reports: readonly CheckReport[]): ExitCode {
  if (reports.every(({ state }) => state === 'unchecked')) return ExitCode.unchecked;
  return reports.some(({ state }) => state === 'error') ? ExitCode.unhealthy : ExitCode.done;
}

/** @param allWell the verdict if no check found anything */
export function formatChecks(reports: readonly CheckReport[], allWell: string): Output {
  const checked = reports.some(({ state }) => state !== 'unchecked');
  const healthy = checked && !reports.some(({ state }) => state === 'error');
  return {
    data: { checked, healthy, checks: reports },
    lines: () => [...reports.flatMap(formatCheck), summaryOf(reports, allWell)],
  };
}

function formatCheck({ check, state, message, findings }: CheckReport): Line[] {
  if (findings.length > 0) return formatFindings(findings, LABELS);
  const head = state === 'unchecked' ? NOT_CHECKED : ({ text: 'OK', style: 'green' } as const);
  return message === '' ? [] : [[head, ` ${check}: ${message}`]];
}

function summaryOf(reports: readonly CheckReport[], allWell: string): Line {
  const numberOf = (state: CheckReport['state']) => reports.filter((each) => each.state === state).length;
  const [errors, warnings, unchecked] = [numberOf('error'), numberOf('warning'), numberOf('unchecked')];
  if (unchecked === reports.length) return [{ text: NOTHING_CHECKED, style: 'yellow' }];
  const rest = unchecked === 0 ? '' : `, ${unchecked} not checked`;
  if (errors + warnings === 0) return [{ text: allWell, style: 'green' }, rest];
  return `${count(reports.length - unchecked, 'check')}: ${errors} failed, ${count(warnings, 'warning')}${rest}`;
}
