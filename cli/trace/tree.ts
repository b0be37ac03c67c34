import { EVENT_REASONS, EventReason } from '../../api/event-reasons.js';
import { truncate } from '../../api/json.js';
import { AllocationReason } from '../../api/names.js';
import type { Read } from '../reader.js';
import { escapeLine } from '../terminal.js';

/**
 * How a part of a VM's story is, from good to bad:
 * - `ok`: as it should be
 * - `progress`: Holdfast or KubeVirt is at work, and nobody needs to do anything
 * - `unknown`: the user may not read it, or the read failed
 * - `warning`: it works, and somebody should do something
 * - `wrong`: it does not work
 */
const HEALTHS = ['ok', 'progress', 'unknown', 'warning', 'wrong'] as const;
export type Health = (typeof HEALTHS)[number];

/** Something that a user should know about an object. */
export interface TraceFinding {
  readonly health: Exclude<Health, 'ok'>;
  /** That of the condition or event, if there is one. */
  readonly reason?: string;
  readonly message: string;
  /** What to do, if the message does not say it. */
  readonly remedy?: string;
}

/** An object of a VM's story, and the objects that depend on it. All texts are clean and short, see {@link cleanText}. */
export interface TraceNode {
  /** Its kind, or `Network` for a network of the VM's spec. */
  readonly kind: string;
  /** `namespace/name`, or the name. */
  readonly name: string;
  /** In a few words. */
  readonly state: string;
  /** The worst of its findings, and of its children if somebody should act. */
  readonly health: Health;
  readonly findings: readonly TraceFinding[];
  readonly children: readonly TraceNode[];
}

/** The parts of a node before their texts are cleaned. */
type NodeParts = Pick<TraceNode, 'kind' | 'name' | 'state'> & Partial<Pick<TraceNode, 'findings' | 'children'>>;

const MAX_TEXT_LENGTH = 512;
const MAX_NAME_LENGTH = 253 + 1 + 253;

/**
 * Makes a text that a tenant may have written safe and short: one line, without characters that a terminal interprets, at most 512
 * characters long.
 */
function cleanText(text: string, maxLength = MAX_TEXT_LENGTH): string {
  // a text of megabytes is cut first
  const start = text.slice(0, 2 * maxLength).replaceAll(/\s+/g, ' ');
  return escapeLine(truncate(start.trim(), maxLength));
}

/** Builds a node. Its health is that of its worst finding, or of a child that needs somebody to act. */
export function traceNode({ kind, name, state, findings = [], children = [] }: NodeParts): TraceNode {
  const cleaned = findings.map(({ health, reason, message, remedy }) => ({
    health,
    ...(reason !== undefined && { reason: cleanText(reason) }),
    message: cleanText(message),
    ...(remedy !== undefined && { remedy: cleanText(remedy) }),
  }));
  return {
    kind: cleanText(kind),
    name: cleanText(name, MAX_NAME_LENGTH),
    state: cleanText(state),
    health: worst([...findings, ...children.filter(needsAction)].map(({ health }) => health)),
    findings: cleaned,
    children,
  };
}

function needsAction({ health }: TraceNode): boolean {
  return health === 'warning' || health === 'wrong';
}

/** Returns the worst health in a tree. */
export function healthOfTree({ health, children }: Pick<TraceNode, 'health' | 'children'>): Health {
  return worst([health, ...children.map(healthOfTree)]);
}

function worst(healths: readonly Health[]): Health {
  return HEALTHS[Math.max(0, ...healths.map((health) => HEALTHS.indexOf(health)))] ?? 'ok';
}

const { PredecessorClaim, ClaimDelayed, ClaimRefused } = EVENT_REASONS;

/** What to do about a reason whose message does not say it, or not how. */
const REMEDIES: Readonly<Partial<Record<string, string>>> = {
  [AllocationReason.Conflict]:
    'kubectl holdfast who ADDRESS names the owner, or until when the address is kept. ipam retries when it is free',
  [AllocationReason.Internal]: 'correct what the message names, and see the log of ipam. ipam retries',
  [AllocationReason.InvalidRequest]: "correct the annotation network.kubevirt.io/addresses of the VM's template",
  ...Object.fromEntries([PredecessorClaim, ClaimDelayed, ClaimRefused].map(({ reason, todo }) => [reason, todo])),
  [EventReason.NetworkInvalid]: 'correct the NAD',
  [EventReason.IpamNotResponding]:
    'see the pods of holdfast-ipam, their logs, and kubectl -n holdfast-system get lease',
  FailedScheduling: 'see what the message lists; with ipam.holdfast.dev/…, no node has a free address of the pool',
};

/** Returns the finding of a condition or event, with what to do unless its message says it. */
export function findingOf(health: TraceFinding['health'], reason: string, message: string): TraceFinding {
  const remedy = Object.hasOwn(REMEDIES, reason) ? REMEDIES[reason] : undefined;
  return { health, reason, message, ...(remedy !== undefined && { remedy }) };
}

/** Returns a node that says why something could not be read, if it could not. */
export function unreadNodes(kind: string, name: string, read: Read<unknown>): TraceNode[] {
  const findings = unreadFindings(read);
  return findings.length === 0 ? [] : [traceNode({ kind, name, state: 'not shown', findings })];
}

/** Says why something could not be read, if it could not. */
export function unreadFindings(read: Read<unknown>): TraceFinding[] {
  return read.kind === 'found' || read.kind === 'absent' ? [] : [{ health: 'unknown', message: read.why }];
}
