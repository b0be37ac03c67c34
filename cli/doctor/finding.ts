import type { ObservedCluster } from './observe.js';
import { groupBy } from '../group-by.js';
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
  /** That of the condition or event, if there is one. */
  readonly reason?: string;
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

export function errorsFirst(findings: readonly Finding[]): Finding[] {
  return [...findings.filter(isError), ...findings.filter((finding) => !isError(finding))];
}

/** Of one check. Tenants create VMs, and NADs from which pools are derived: their number must not hide what else is wrong. */
const MAX_SHOWN = 20;

const SEVERITIES: Readonly<Record<Severity, string>> = { error: 'ERROR', warning: 'WARNING' };

/** Formats findings for people, the errors first: of each check few, but one of each reason before the others. */
export function formatFindings(findings: readonly Finding[], labels = SEVERITIES): Line[] {
  const groups = [...groupBy(findings, ({ check }) => check).values()];
  const hidden = groups.filter((group) => group.length > MAX_SHOWN);
  return [
    ...errorsFirst(groups.flatMap(firstOfEachReason)).flatMap((finding) => formatFinding(finding, labels)),
    ...hidden.map(([first, ...more]): Line => {
      const number = count(more.length + 1 - MAX_SHOWN, `more finding`);
      return [
        { text: 'NOT SHOWN', style: 'dim' },
        ` ${number} of the check ${first?.check ?? ''} (all of them: -o json)`,
      ];
    }),
  ];
}

function firstOfEachReason(findings: readonly Finding[]): Finding[] {
  const byReason = groupBy(errorsFirst(findings), ({ severity, reason = '' }) => `${severity} ${reason}`);
  const ranked = [...byReason.values()].flatMap((group) => group.map((finding, rank) => ({ finding, rank })));
  return ranked
    .sort((a, b) => a.rank - b.rank)
    .slice(0, MAX_SHOWN)
    .map(({ finding }) => finding);
}

type CheckedScope = Pick<ObservedCluster, 'refused' | 'onlyNamespace' | 'vms' | 'claims' | 'nads'>;

/** The verdict for users without rights. */
export const NOTHING_CHECKED = 'nothing could be checked: you may read none of it';

/** Formats what the doctor found, and what it could not look at. */
export function reportOf(findings: readonly Finding[], observed: CheckedScope, isUnchecked = false): Output {
  const { refused } = observed;
  return {
    data: { checked: !isUnchecked, healthy: !isUnchecked && !findings.some(isError), findings, refused },
    lines: () => [...formatFindings(findings), ...formatRefused(refused), summaryOf(findings, observed, isUnchecked)],
  };
}

function formatFinding({ severity, object, problem, remedy }: Finding, labels: typeof SEVERITIES): Line[] {
  const style = severity === 'error' ? 'red' : 'yellow';
  return [[{ text: labels[severity], style }, ` ${object}`], `  ${problem}`, `  → ${remedy}`];
}

export const NOT_CHECKED = { text: 'NOT CHECKED', style: 'dim' } as const;

export function formatRefused(refused: readonly string[]): Line[] {
  const [first, ...more] = refused;
  if (first === undefined) return [];
  const others = more.length === 0 ? '' : `, and ${count(more.length, 'more thing')} (all of them: -o json)`;
  return [[NOT_CHECKED, ` ${first}${others}`]];
}

function summaryOf(findings: readonly Finding[], observed: CheckedScope, isUnchecked: boolean): Line {
  if (isUnchecked) return [{ text: NOTHING_CHECKED, style: 'yellow' }];

  const errors = findings.filter(isError).length;
  const warnings = findings.length - errors;
  if (findings.length === 0 && observed.refused.length > 0)
    return `nothing is wrong with what was checked${namespaceScope(observed)}`;
  if (findings.length === 0) return [{ text: 'nothing is wrong', style: 'green' }];
  return `${count(errors, 'error')}, ${count(warnings, 'warning')}`;
}

/** Names what a user could read who may read one namespace only. */
function namespaceScope({ onlyNamespace, vms, claims, nads }: CheckedScope): string {
  if (onlyNamespace === undefined) return '';
  const read = Object.entries({ VMs: vms, claims, NADs: nads }).flatMap(([name, list]) => (list ? [name] : []));
  return `: ${read.join(', ')} of namespace ${onlyNamespace}`;
}
