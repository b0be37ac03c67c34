import type { AddressLease, AddressLeaseSpec, LeaseOwner, LeaseWrite } from '../../api/address-lease.js';
import { omitUndefined } from '../../api/json.js';
import type { ObjectCreation, ObjectPatch } from '../../api/meta.js';
import { ADDRESS_LEASE_KIND, IPAM_API_VERSION, LEASE_MAC, PROBE_ANNOTATION } from '../../api/names.js';
import { formatProbe } from '../../api/probe.js';
import { isResponderClaim } from '../../api/responders.js';
import { type Address, formatAddress, sameAddress } from '../address/address.js';
import { coolingStart } from './cooling-start.js';
import {
  CLEARED_LABELS,
  type LeaseRecord,
  type LeaseStateFields,
  isReservation,
  isSameWorkload,
  leaseLabels,
  mayTakeOver,
  stateOf,
  undefinedToNull,
} from './lease-record.js';
import { leaseName } from './lease-name.js';

export {
  type LeaseRecord,
  type LeaseStateFields,
  isReservation,
  isSameWorkload,
  readLease,
  stateOf,
} from './lease-record.js';

/**
 * The life of a lease: how it is allocated, released and expired. Probes are in `lease-quarantine.ts`. No other file builds these writes.
 *
 * Caches choose candidates, writes decide: a write carries the UID and resourceVersion of the lease that was read. On a conflict the caller
 * reads the lease again and starts over.
 *
 * | verb               | lease before          | lease after                          |
 * |--------------------|-----------------------|--------------------------------------|
 * | `createLease`      | none                  | held                                 |
 * | `reallocateLease`  | released, or reserved | held                                 |
 * |                    | held by a launcher    | held by the claim of its VM          |
 * | `updateLeaseUsage` | held                  | held, with another node or container |
 * | `updateWorkload`   | held by a claim       | held, for the VM that adopted it     |
 * | `releaseLease`     | held                  | released                             |
 * | `endProbe`         | held, being probed    | held, with the result of the probe   |
 * | `quarantineLease`  | held, not used yet    | quarantined                          |
 * | `expireLease`      | released              | deleted; a reservation: reserved     |
 * |                    | quarantined           | deleted                              |
 */

/** The spec that a lease gets when it is allocated. */
export interface LeaseRequest {
  address: Address;
  addressSpace: string;
  pool: string;
  owner: LeaseOwner;
  node?: string;
  containerID?: string;
  interface?: string;
  mac?: string;
  /** UIDs of the launchers of the claim's VM: the claim may take over the leases that they hold. */
  launchers?: ReadonlySet<string>;
  /** A responder is to find out whether another host has the address, before anybody uses it. */
  isProbed?: boolean;
}

/** The times of a pool, in milliseconds since the release. */
export interface LeaseTimes {
  /** The effective cool-down, during which only the workload that released the address may get it again. See {@link effectiveCooldownMs}. */
  cooldownMs: number;
  /** How long the address is kept for its MAC address while other addresses are free. 0: the pool is not sticky. */
  stickyMs: number;
  /** Leases of claims are sticky too. Default: only those of pods. */
  isStickyForClaims?: boolean;
}

export type Holder = LeaseOwner | 'reserved' | 'quarantined';

/** `true`; or the time from which the lease can be allocated, in the clock's milliseconds; or its holder. */
export type Availability = true | { until: number } | { holder: Holder };

const PROBE_REQUESTED = { [PROBE_ANNOTATION]: formatProbe('requested') };

/** When to ask again for an address whose lease the collector must delete first. */
const COLLECTOR_DELAY_MS = 1_000;

/** True for the claim by which a responder of Holdfast has its own address. */
export function isResponder({ kind, namespace, name }: LeaseOwner): boolean {
  return kind === 'IPAMClaim' && isResponderClaim({ namespace, name });
}

/** True for the leases that keep a pool from being deleted and a range from being drained. The others end by themselves. */
export function isHeldOrReserved(lease: LeaseStateFields): boolean {
  return ['held', 'reserved'].includes(stateOf(lease));
}

/** True if a pod holds the address. Both sides of the release handshake of a block use this rule. */
export function isHeldByPod(lease: LeaseStateFields & Pick<LeaseRecord, 'owner'>): boolean {
  return lease.owner?.kind === 'Pod' && stateOf(lease) === 'held';
}

/** Allocates an address that has no lease. */
export function createLease(request: LeaseRequest): ObjectCreation<AddressLease> {
  const { address, addressSpace, pool, owner } = request;
  const usage = omitUndefined(usageOf(request));
  const spec: AddressLeaseSpec = { address: formatAddress(address), addressSpace, pool, owner, ...usage };
  const annotations = request.isProbed === true ? { annotations: PROBE_REQUESTED } : {};
  const metadata = { name: leaseName(addressSpace, address), labels: leaseLabels(spec), ...annotations };
  return { verb: 'create', object: { apiVersion: IPAM_API_VERSION, kind: ADDRESS_LEASE_KIND, metadata, spec } };
}

/**
 * Returns whether an existing lease can be allocated for the request. The write decides. A lease of another address never can.
 * @param now of the monotonic clock, as all times that decide about released leases
 */
export function availabilityOf(
  lease: LeaseRecord,
  request: LeaseRequest,
  times: LeaseTimes,
  now: number,
): Availability {
  if (isAnothers(lease, request)) return { holder: holderOf(lease) };
  if (isReservation(lease) && !(hasPoolFor(lease, request) && hasRequestedMac(lease, request)))
    return { holder: 'reserved' };
  if (stateOf(lease) !== 'released') return true;
  const until = allocatableFrom(lease, request, times, now);
  return now >= until || { until };
}

function isAnothers(lease: LeaseRecord, request: LeaseRequest): boolean {
  const isRequestedAddress = lease.addressSpace === request.addressSpace && sameAddress(lease.address, request.address);
  const state = stateOf(lease);
  const isTaken = state === 'quarantined' || (state === 'held' && !mayTakeOver(lease, request));
  // a lease that is being deleted is lost with its last finalizer
  return !isRequestedAddress || isTaken || lease.metadata.deletionTimestamp !== undefined;
}

/** Returns who keeps the address from others. */
export function holderOf({ owner, quarantine }: Pick<LeaseRecord, 'owner' | 'quarantine'>): Holder {
  return quarantine !== undefined ? 'quarantined' : (owner ?? 'reserved');
}

/**
 * Allocates a released or reserved lease for the request, or one that its owner takes over. All fields of the earlier owner are replaced.
 * @throws {TypeError} if the lease is held by another owner or quarantined, is for another address or pool, or is reserved and the MAC address differs
 */
export function reallocateLease(record: LeaseRecord, request: LeaseRequest): ObjectPatch {
  checkAllocatable(record, request);
  const { owner } = request;
  const { pool } = record;
  const usage = usageOf(request);
  const labels = leaseLabels({ address: formatAddress(request.address), pool, owner, ...omitUndefined(usage) });
  const reservation = stateOf(record) === 'reserved' ? { reserved: true } : {};
  // the probe of an earlier owner says nothing now
  const annotations = request.isProbed === true ? PROBE_REQUESTED : { [PROBE_ANNOTATION]: null };
  return patchLease(record, {
    ...((request.isProbed === true || record.probe !== undefined) && { annotations }),
    labels: { ...CLEARED_LABELS, ...labels },
    spec: {
      owner: { ...owner, workloadUID: owner.workloadUID ?? null },
      ...undefinedToNull(usage),
      ...reservation,
      releasedAt: null,
    },
  });
}

function checkAllocatable(record: LeaseRecord, request: LeaseRequest): void {
  const { name } = record.metadata;
  const state = stateOf(record);
  if (state === 'quarantined' || (state === 'held' && !mayTakeOver(record, request)))
    throw new TypeError(`AddressLease ${name} is ${state}: it cannot be allocated`);
  if (leaseName(request.addressSpace, request.address) !== name || !hasPoolFor(record, request)) {
    throw new TypeError(`AddressLease ${name} of pool ${record.pool} cannot be allocated for another address or pool`);
  }
  if (isReservation(record) && !hasRequestedMac(record, request)) {
    throw new TypeError(
      `AddressLease ${name} is reserved for ${record.mac ?? 'no MAC address'}: it cannot be allocated for another one`,
    );
  }
}

/** A lease that is taken over keeps its pool, which another one may have replaced. */
function hasPoolFor(lease: LeaseRecord, { pool }: LeaseRequest): boolean {
  return stateOf(lease) === 'held' || lease.pool === pool;
}

/** The fields of a held lease that change when its owner uses it elsewhere. */
type LeaseUsage = Pick<LeaseRequest, 'node' | 'containerID' | 'interface' | 'mac'>;

/**
 * Records that the owner now uses the address elsewhere, for instance a pod in its next sandbox.
 * @throws {TypeError} if the lease is not held
 */
export function updateLeaseUsage(record: LeaseRecord, usage: LeaseUsage): ObjectPatch {
  const { metadata, address, pool, owner } = record;
  if (owner === undefined || stateOf(record) !== 'held') {
    throw new TypeError(`AddressLease ${metadata.name} is ${stateOf(record)}: its usage cannot be updated`);
  }
  // the owner cannot change the MAC address of a reservation
  const fields = usageOf(isReservation(record) ? { ...usage, ...omitUndefined({ mac: record.mac }) } : usage);
  const labels = leaseLabels({ address: formatAddress(address), pool, owner, ...omitUndefined(fields) });
  return patchLease(record, { labels: { ...CLEARED_LABELS, ...labels }, spec: undefinedToNull(fields) });
}

/**
 * Records the VM that has adopted the claim that holds the lease.
 * @throws {TypeError} if no claim holds it
 */
export function updateWorkload(record: LeaseRecord, workloadUID: string): ObjectPatch {
  const { metadata, owner } = record;
  if (owner?.kind !== 'IPAMClaim' || stateOf(record) !== 'held')
    throw new TypeError(`AddressLease ${metadata.name} is not held by a claim: its workload cannot be updated`);
  return patchLease(record, { spec: { owner: { workloadUID } } });
}

/**
 * Releases the lease: its cool-down begins. An address that a probe found taken is not kept for its MAC address: it could come back without a probe.
 * @param at see {@link releaseTime}
 * @throws {TypeError} if the lease is not held: a second release would restart the cool-down
 */
export function releaseLease(record: LeaseRecord, at: number): ObjectPatch {
  if (stateOf(record) !== 'held') {
    throw new TypeError(`AddressLease ${record.metadata.name} is ${stateOf(record)}: it cannot be released`);
  }
  const releasedAt = new Date(at).toISOString();
  const isTaken = typeof record.probe === 'object';
  if (!isTaken || record.mac === undefined || isReservation(record))
    return patchLease(record, { spec: { releasedAt } });
  return patchLease(record, { labels: { [LEASE_MAC]: null }, spec: { releasedAt, mac: null } });
}

/**
 * Ends a released or quarantined lease: deletes it, or makes it a reservation again without any field of the last owner.
 * @throws {TypeError} if the lease is held or reserved
 */
export function expireLease(record: LeaseRecord): LeaseWrite {
  const { metadata, address, pool, mac } = record;
  const { name, uid, resourceVersion } = metadata;
  const state = stateOf(record);
  if (state !== 'released' && state !== 'quarantined')
    throw new TypeError(`AddressLease ${name} is ${state}: it cannot expire`);
  if (!isReservation(record)) return { verb: 'delete', name, uid, resourceVersion };
  const labels = leaseLabels({ address: formatAddress(address), pool, ...omitUndefined({ mac }) });
  return patchLease(record, { labels: { ...CLEARED_LABELS, ...labels }, spec: CLEARED_OWNER });
}

export function mayExpire(record: LeaseRecord, times: LeaseTimes, now: number): boolean {
  return record.metadata.deletionTimestamp === undefined && now >= expiresAt(record, times);
}

/** Returns when a released or quarantined lease may expire, in the clock's milliseconds; Infinity for other leases. */
export function expiresAt(record: LeaseRecord, times: LeaseTimes): number {
  const { quarantine } = record;
  if (quarantine !== undefined) return coolingStart(record) + (quarantine.until - quarantine.since);
  const stickyMs = isSticky(record, times) && !isReservation(record) ? times.stickyMs : 0;
  return coolingStart(record) + Math.max(times.cooldownMs, stickyMs);
}

/** True if a lease that is not held is kept for its MAC address, for a time or permanently. */
export function isSticky(record: LeaseRecord, { stickyMs, isStickyForClaims = false }: LeaseTimes): boolean {
  if (record.mac === undefined || isReservation(record)) return record.mac !== undefined;
  return stickyMs > 0 && (isStickyForClaims || record.owner?.kind !== 'IPAMClaim');
}

/** Returns when the request may have a released lease, in the clock's milliseconds. */
function allocatableFrom(record: LeaseRecord, request: LeaseRequest, times: LeaseTimes, now: number): number {
  const { owner, pool } = record;
  // the pool of a lease never changes: another pool gets the address only after this lease is deleted
  if (pool !== request.pool) return Math.max(expiresAt(record, times), now + COLLECTOR_DELAY_MS);
  if (owner !== undefined && isSameWorkload(owner, request.owner)) return 0;
  if (!hasRequestedMac(record, request)) return expiresAt(record, times);
  return isReturningPod(record, request, times) ? 0 : coolingStart(record) + times.cooldownMs;
}

/** True for a pod with the MAC address of an earlier pod. It need not wait, because agents never answer for pods from a cache. */
function isReturningPod(record: LeaseRecord, request: LeaseRequest, times: LeaseTimes): boolean {
  const { owner } = record;
  return owner?.kind === 'Pod' && owner.namespace === request.owner.namespace && isSticky(record, times);
}

function hasRequestedMac({ mac }: LeaseRecord, request: LeaseRequest): boolean {
  return mac !== undefined && mac === request.mac?.toLowerCase();
}

function usageOf({ node, containerID, interface: podInterface, mac }: LeaseUsage) {
  return { node, containerID, interface: podInterface, mac: mac?.toLowerCase() };
}

/** Removes in a merge patch who has or had the address. */
export const CLEARED_OWNER = { owner: null, node: null, containerID: null, interface: null, releasedAt: null };

/** Returns a merge patch with the precondition that nobody changed the lease since it was read. */
export function patchLease(
  { metadata: { name, uid, resourceVersion } }: Pick<LeaseRecord, 'metadata'>,
  { labels, annotations, spec }: { labels?: object; annotations?: object; spec?: object },
): ObjectPatch {
  const metadata = { uid, resourceVersion, ...omitUndefined({ labels, annotations }) };
  return { verb: 'patch', name, body: { metadata, ...omitUndefined({ spec }) } };
}
