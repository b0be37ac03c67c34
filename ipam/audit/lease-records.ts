import type { AuditLeaseRecord, AuditType } from '../../api/audit-record.js';
import { formatAddress } from '../../addressing/address/address.js';
import { type LeaseRecord, stateOf } from '../../addressing/lease/lease.js';

/** A change of one lease as the watch shows it. A lease that is replaced by another of its name is removed and added. */
export interface LeaseTransition {
  readonly before?: LeaseRecord;
  readonly after?: LeaseRecord;
}

/**
 * Returns the record of a change; undefined if it is of no interest, as a change of labels. Pure.
 * @param time when it was seen, RFC 3339
 */
export function recordOfTransition({ before, after }: LeaseTransition, time: string): AuditLeaseRecord | undefined {
  if (after === undefined) return before && leaseRecord('expired', before, time);
  const type = changeOf(before, after);
  return type && leaseRecord(type, after, time);
}

function changeOf(before: LeaseRecord | undefined, after: LeaseRecord): AuditType | undefined {
  const state = stateOf(after);
  const isSame = before !== undefined && stateOf(before) === state && before.owner?.uid === after.owner?.uid;
  if (state !== 'held') return isSame ? undefined : state;
  if (!isSame) return 'allocated';
  return USAGE_FIELDS.some((field) => before[field] !== after[field]) ? 'changed' : undefined;
}

const USAGE_FIELDS = ['node', 'mac', 'interface', 'containerID'] as const;

/** Returns the record of a lease after a gap. */
export function recordOfState(lease: LeaseRecord, time: string): AuditLeaseRecord {
  return leaseRecord('state', lease, time);
}

function leaseRecord(type: AuditType, lease: LeaseRecord, time: string): AuditLeaseRecord {
  const { address, addressSpace, pool, owner, node, metadata } = lease;
  const mac = lease.mac ?? lease.quarantine?.mac;
  return {
    time,
    type,
    address: formatAddress(address),
    addressSpace,
    pool,
    ...(type === 'state' && { state: stateOf(lease) }),
    ...(owner !== undefined && {
      owner: { kind: owner.kind, namespace: owner.namespace, name: owner.name, uid: owner.uid },
    }),
    ...(mac !== undefined && { mac }),
    ...(node !== undefined && { node }),
    uid: metadata.uid,
    resourceVersion: metadata.resourceVersion,
  };
}
