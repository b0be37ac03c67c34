import { IPS_ALLOCATED } from '../../api/names.js';
import { isBeingDeleted, objectKey } from '../../api/meta.js';
import { firstOfMany } from '../output.js';
import { type Finding, warningOf } from './finding.js';
import type { ObservedCluster } from './observe.js';

/** An owner that is gone for less than this time is no leak: the collector waits, too. */
const SETTLED_MS = 15 * 60_000;
const MAX_NAMED = 5;

/** Leases whose owners are gone. */
export function checkLeaks({ leases, owners, now }: ObservedCluster): Finding[] {
  if (leases === undefined || owners === undefined || now === undefined) return [];
  const leaked = leases.filter(({ owner, createdAt }) => !owners.has(owner.uid) && now - createdAt > SETTLED_MS);
  if (leaked.length === 0) return [];
  const names = leaked.map(({ name, owner }) => `${name} (${owner.kind} ${owner.namespace}/${owner.name})`);
  return [
    warningOf(
      'leaks',
      `AddressLeases (${leaked.length})`,
      `their owners do not exist: ${firstOfMany(names, MAX_NAMED)}`,
      'ipam releases them when --collect-after is over. If they stay, the log of ipam says why',
    ),
  ];
}

/** Released addresses that nobody gets, because Secrets with network data may still hold them. */
export function checkLockedLeases({ lockedLeases = [], now }: ObservedCluster): Finding[] {
  const locked = lockedLeases.filter(({ releasedAt }) => now !== undefined && now - releasedAt > SETTLED_MS);
  if (locked.length === 0) return [];
  const names = locked.map(({ name, secret }) => `${name} (Secret ${secret})`);
  return [
    warningOf(
      'locks',
      `AddressLeases (${locked.length})`,
      `nobody gets these released addresses, because Secrets with network data may still hold them: ${firstOfMany(names, MAX_NAMED)}`,
      'the process guest removes them: its log says why it has not. If guest was removed for good, see docs/how-to/uninstall.md',
    ),
  ];
}

/** Claims that have no address. */
export function checkClaims({ claims = [] }: ObservedCluster): Finding[] {
  const waiting = claims.flatMap((claim) => {
    const condition = claim.status?.conditions?.find(({ type }) => type === IPS_ALLOCATED);
    if (condition?.status !== 'False' || isBeingDeleted(claim)) return [];
    return [{ key: objectKey(claim), reason: condition.reason, message: condition.message }];
  });
  const reasons = [...new Set(waiting.map(({ reason }) => reason))].sort();
  return reasons.map((reason) => {
    const all = waiting.filter((claim) => claim.reason === reason);
    const [first] = all;
    return warningOf(
      'claims',
      `IPAMClaims (${all.length})`,
      `wait for an address because of ${reason}, for example ${first?.key ?? ''}: ${first?.message ?? ''}`,
      'kubectl holdfast ips -A lists them; docs/reference/conditions.md explains the reason',
    );
  });
}
