import { LEASE_STATES, type LeaseState } from './address-lease.js';
import { asRecord, isRecord } from './json.js';

/** The lines of ipam's audit log: who had which address, from when to when. Each is one JSON object. */

const AUDIT_TYPES = [
  /** The address has a new owner. */
  'allocated',
  /** The owner is the same, and uses the address on another node, interface or MAC address. */
  'changed',
  /** The owner is gone. The address cools down, or is sticky for its MAC address. */
  'released',
  /** The lease is deleted: nobody has the address. */
  'expired',
  /** An administrator reserves the address, or a reserved one has lost its owner. */
  'reserved',
  /** A host that Holdfast does not know has the address, so nobody gets it for a while. `mac` is that of the host. */
  'quarantined',
  /** The state of a lease after a gap. It may be older. */
  'state',
] as const;
export type AuditType = (typeof AUDIT_TYPES)[number];

const WITHOUT_OWNER: readonly unknown[] = ['reserved', 'quarantined'] satisfies LeaseState[];

/** A change of a lease, or its state after a gap. */
export interface AuditLeaseRecord {
  /** RFC 3339, with milliseconds: when the leader of ipam saw it. */
  readonly time: string;
  readonly type: AuditType;
  readonly address: string;
  readonly addressSpace: string;
  readonly pool: string;
  /** With `state`, the state in which the lease was. */
  readonly state?: LeaseState;
  /** On `released` and `expired`, the last owner. */
  readonly owner?: { readonly kind: string; readonly namespace: string; readonly name: string; readonly uid: string };
  readonly mac?: string;
  readonly node?: string;
  /** UID and version of the AddressLease. After a gap, the same version proves that nothing has changed. */
  readonly uid: string;
  readonly resourceVersion: string;
}

/** Changes may be missing from `from` until the next line of type `listed`. */
export interface AuditGapRecord {
  readonly time: string;
  readonly type: 'gap';
  /**
   * - `start`: another leader, or a process that has started
   * - `relist`: the watch could not continue, and all leases were listed
   * - `overflow`: the log could not be written fast enough, or not at all
   */
  readonly reason: 'start' | 'relist' | 'overflow';
  /** Absent: the time until which the lines before are complete. */
  readonly from?: string;
  /** How many lines are lost, if that is known. */
  readonly lost?: number;
  /** The versions of the lease list between which changes may be missing. */
  readonly fromResourceVersion?: string;
  readonly toResourceVersion?: string;
}

/** When a line is written, its leader may not have seen the last changes, because its watch is interrupted. */
interface CompleteRecord {
  /** All changes until then have a line, unless a gap says otherwise. Absent: until `time`. */
  readonly completeUntil?: string;
}

/** The end of a gap: from here on, the state of each address is known. */
export interface AuditListedRecord extends CompleteRecord {
  readonly time: string;
  readonly type: 'listed';
  /**
   * - `all`: each lease that exists has a line since the gap
   * - `changed`: a lease without a line since the gap is the same as before it
   */
  readonly scope: 'all' | 'changed';
}

/** Nothing has happened: shows that no line is missing. */
interface AuditAliveRecord extends CompleteRecord {
  readonly time: string;
  readonly type: 'alive';
}

export type AuditRecord = AuditLeaseRecord | AuditGapRecord | AuditListedRecord | AuditAliveRecord;

/** While ipam leads, the log has a line at least this often. */
export const AUDIT_ALIVE_MS = 60_000;

/** Longer lines are not from ipam. */
export const MAX_AUDIT_LINE = 4_096;

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

/** Reads one line. @returns undefined if ipam cannot have written it; a program's log may be in the same file */
export function readAuditRecord(line: string): AuditRecord | undefined {
  const record = line.length > MAX_AUDIT_LINE ? undefined : parseAudit(line);
  if (record === undefined || !isTime(record.time)) return undefined;
  if (record.type === 'alive') return isAlive(record) ? record : undefined;
  if (record.type === 'listed') return isListed(record) ? record : undefined;
  if (record.type === 'gap') return isGap(record) ? record : undefined;
  return isLeaseRecord(record) ? record : undefined;
}

/** ipam wraps each record, so that other JSON lines of its log are never read as one. */
function parseAudit(line: string): Record<string, unknown> | undefined {
  try {
    const { audit } = asRecord(JSON.parse(line));
    return isRecord(audit) ? audit : undefined;
  } catch {
    return undefined;
  }
}

export function formatAuditRecord(record: AuditRecord): string {
  return JSON.stringify({ audit: record });
}

function isTime(value: unknown): value is string {
  return typeof value === 'string' && TIME.test(value) && !Number.isNaN(Date.parse(value));
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}

function isOptionalText(value: unknown): boolean {
  return value === undefined || isText(value);
}

function isGap(record: Record<string, unknown>): record is Record<string, unknown> & AuditGapRecord {
  const { reason, from } = record;
  return (reason === 'start' || reason === 'relist' || reason === 'overflow') && (from === undefined || isTime(from));
}

function isAlive(record: Record<string, unknown>): record is Record<string, unknown> & AuditAliveRecord {
  return record.completeUntil === undefined || isTime(record.completeUntil);
}

function isListed(record: Record<string, unknown>): record is Record<string, unknown> & AuditListedRecord {
  return (record.scope === 'all' || record.scope === 'changed') && isAlive(record);
}

function isLeaseRecord(record: Record<string, unknown>): record is Record<string, unknown> & AuditLeaseRecord {
  const { address, addressSpace, pool, uid, resourceVersion, mac, node } = record;
  return (
    AUDIT_TYPES.some((each) => each === record.type) &&
    [address, addressSpace, pool, uid, resourceVersion].every(isText) &&
    [mac, node].every(isOptionalText) &&
    hasState(record)
  );
}

function hasState({ type, state, owner }: Record<string, unknown>): boolean {
  const isStated = type === 'state' ? LEASE_STATES.some((each) => each === state) : state === undefined;
  const { kind, namespace, name, uid } = asRecord(owner);
  if (owner !== undefined) return isStated && [kind, namespace, name, uid].every(isText);
  return isStated && (type === 'expired' || WITHOUT_OWNER.includes(type === 'state' ? state : type));
}
