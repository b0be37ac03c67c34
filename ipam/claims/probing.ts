import { PROBE_LIMITS } from '../../api/limits.js';
import { isBeingDeleted } from '../../api/meta.js';
import { type Family, sameAddress } from '../../addressing/address/address.js';
import { type LeaseRecord, isReservation, isResponder } from '../../addressing/lease/lease.js';
import { leaseOwnerOf } from '../../addressing/lease/lease-record.js';
import { readShownAddresses } from './shown/claim-addresses.js';
import { isWaitingFor } from './running/claim-pods.js';
import type { DesiredAddresses } from './desired-addresses.js';
import type { ClaimObservation } from './observe.js';
import type { ClaimStep, SkipCause } from './step.js';

/**
 * Probing: before a claim shows an address for the first time, a responder looks for a host that has it. The state of the probe is in the lease, so that a process
 * that stops leaves it to the next one. A claim shows an address only if its lease says that the probe has ended, and a lease is quarantined only before: the
 * version of the lease decides which of the two comes first.
 */

/** Whether the address that is allocated next is to be probed: no guest may have it yet. */
export function shouldProbe(observed: ClaimObservation, family: Family): boolean {
  const { claim, pods, probing } = observed;
  if (!mayProbe(observed) || probing?.stop() !== undefined || isResponder(leaseOwnerOf(claim))) return false;
  const isUnused = readShownAddresses(claim).addresses.length === 0 && pods.every((pod) => isWaitingFor(pod, claim));
  return isUnused && (probing?.quarantinedInARow(family) ?? 0) < PROBE_LIMITS.perClaim;
}

function mayProbe({ claim, resolution, running }: ClaimObservation): boolean {
  const probes = resolution.kind === 'served' && resolution.pool.guest?.probe === true;
  return probes && running.kind === 'none' && !isBeingDeleted(claim);
}

/** A lease of another pool does not count for the limits of the claim's pool. */
function isProbed(observed: ClaimObservation, { pool }: LeaseRecord): boolean {
  const { resolution } = observed;
  return mayProbe(observed) && resolution.kind === 'served' && resolution.pool.name === pool;
}

/**
 * Plans what comes before a claim shows its first addresses.
 * @returns undefined if no probe is open
 */
export function probeStep(
  observed: ClaimObservation,
  { keep, shown, requested }: DesiredAddresses,
  isLive: boolean,
): ClaimStep | undefined {
  if (shown.length > 0) return undefined;
  for (const lease of keep) {
    const { probe } = lease;
    if (typeof probe !== 'object') continue;
    const isRequested = requested.some((address) => sameAddress(address, lease.address));
    const step = takenStep(observed, { lease, mac: probe.taken, isRequested }, isLive);
    if (step !== undefined) return step;
  }
  const open = keep.filter(({ probe }) => probe === 'requested');
  const ended = open.flatMap((lease) => {
    const cause = causeToSkip(observed, lease);
    return cause === undefined ? [] : [{ lease, cause }];
  });
  const [first] = ended;
  if (first !== undefined) return skipStep(first.lease, first.cause);
  return open.length === 0 ? undefined : awaitStep(observed, open);
}

interface TakenAddress {
  lease: LeaseRecord;
  /** Of the host that answered. */
  mac: string;
  /** The claim requests this address. */
  isRequested: boolean;
}

function takenStep(
  observed: ClaimObservation,
  { lease, mac, isRequested }: TakenAddress,
  isLive: boolean,
): ClaimStep | undefined {
  // nobody else gets a reserved address anyway
  if (!isProbed(observed, lease) || isReservation(lease)) return skipStep(lease, 'NotApplicable');
  const stop = observed.probing?.stop(lease);
  // the answers of a host that answers for everything mean nothing
  if (stop?.reason === 'ProxyARP' && stop.mac === mac) return skipStep(lease, 'ProbingStopped');
  // the claim would get the same address again
  if (stop !== undefined && isRequested) return skipStep(lease, 'ProbingStopped');
  const reason = `${mac} has one of its addresses`;
  if (!isLive) return { kind: 'read-claim', reason };
  if (stop !== undefined) return { kind: 'release', leases: [lease], reason };
  return { kind: 'quarantine', lease, mac, isRequested, reason };
}

function causeToSkip(observed: ClaimObservation, lease: LeaseRecord): SkipCause | undefined {
  const { probing } = observed;
  if (probing === undefined || !isProbed(observed, lease)) return 'NotApplicable';
  if (probing.stop() !== undefined) return 'ProbingStopped';
  return probing.now - probing.requestedAt(lease) >= PROBE_LIMITS.timeoutMs ? 'NoAnswer' : undefined;
}

function skipStep(lease: LeaseRecord, cause: SkipCause): ClaimStep {
  return { kind: 'skip-probe', lease, cause, reason: `its address is not probed: ${cause}` };
}

function awaitStep({ probing }: ClaimObservation, leases: readonly LeaseRecord[]): ClaimStep {
  const requestedAt = leases.map((lease) => probing?.requestedAt(lease) ?? 0);
  const until = Math.min(...requestedAt) + PROBE_LIMITS.timeoutMs;
  return { kind: 'await-probe', until, reason: 'a responder probes its addresses' };
}
