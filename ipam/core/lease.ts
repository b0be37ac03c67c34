import type { AddressLease, AddressLeaseSpec, LeaseOwner, LeaseWrite } from '../../api/address-lease.js';
import type { KubeObject, ObjectMeta } from '../../api/meta.js';
import { ADDRESS_LEASE_KIND, IPAM_API_VERSION } from '../../api/names.js';
import { type Address, formatAddress, parseAddress, sameAddress } from './address.js';
import { CLEARED_LABELS, leaseLabels } from './lease-labels.js';
import { leaseName } from './lease-name.js';

export type { LeaseWrite } from '../../api/address-lease.js';

/** The life of a lease: the only place that knows what it means to take, release and expire one. */

/** An AddressLease as it is kept in memory: what its spec says, read. */
export interface LeaseRecord extends KubeObject {
  metadata: ObjectMeta & { uid: string; resourceVersion: string };
  addressSpace: string;
  address: Address;
  pool: string;
  owner?: LeaseOwner;
  node?: string;
  containerID?: string;
  interface?: string;
  /** Lower case, with colons. */
  mac?: string;
  /** It is of the static table: after its owner it is reserved for its MAC address again. */
  reserved?: true;
  /** Milliseconds since the epoch. */
  releasedAt?: number;
}

/**
 * - `held`: it has a living owner
 * - `released`: it cools down, or waits for its MAC address; `owner` is the last one
 * - `reserved`: an admin made it, for nobody or for a MAC address
 */
export type LeaseState = 'held' | 'released' | 'reserved';

/** What a lease shall say once it is its owner's. */
export interface LeaseRequest {
  address: Address;
  addressSpace: string;
  pool: string;
  owner: LeaseOwner;
  node?: string;
  containerID?: string;
  interface?: string;
  mac?: string;
}

/** Of the lease's pool, in milliseconds from the release on. */
export interface LeaseTimes {
  /** Before this nobody but the owner, or the workload, that released it may have it. The effective one: never less than agents answer from cache. */
  cooldownMs: number;
  /** Before this nobody but its MAC address may have it, while anything else is free. 0: the pool is not sticky. */
  stickyMs: number;
  /** Those of claims wait for their MAC addresses, too. Default: those of pods alone. */
  retainsClaims?: boolean;
}

/** Yes; or from when on; or who has it. */
export type Availability = true | { until: number } | { holder: LeaseOwner | 'reserved' };

/** What stays in the way until the collector has deleted it is asked about again after this. */
const COLLECTOR_DELAY_MS = 1_000;

/** @throws {TypeError} where the object is no lease that Holdfast could have made; the message names the lease and the field */
export function readLease({ metadata, spec }: AddressLease): LeaseRecord {
  const { name, uid, resourceVersion, creationTimestamp, deletionTimestamp } = metadata;
  if (!uid || !resourceVersion) throw new TypeError(`AddressLease ${name} has no uid or resourceVersion`);
  const address = parseAddress(spec.address);
  const expected = leaseName(spec.addressSpace, address);
  // the name is the lock: under any other name the object locks nothing
  if (name !== expected) {
    throw new TypeError(
      `AddressLease ${name}: spec.address ${spec.address} in spec.addressSpace ${spec.addressSpace} is leased under the name ${expected} only`,
    );
  }
  return {
    metadata: { name, uid, resourceVersion, ...omitUndefined({ creationTimestamp, deletionTimestamp }) },
    addressSpace: spec.addressSpace,
    address,
    pool: spec.pool,
    ...omitUndefined({
      owner: spec.owner,
      node: spec.node,
      containerID: spec.containerID,
      interface: spec.interface,
      mac: spec.mac?.toLowerCase(),
      reserved: spec.reserved === true ? true : undefined,
      releasedAt: spec.releasedAt === undefined ? undefined : parseTime(name, spec.releasedAt),
    }),
  };
}

export function stateOf({ owner, releasedAt }: Pick<LeaseRecord, 'owner' | 'releasedAt'>): LeaseState {
  if (releasedAt !== undefined) return 'released';
  return owner === undefined ? 'reserved' : 'held';
}

/** A pod has the address: what both sides of the handshake over a block go by. */
export function isHeldByPod(lease: Pick<LeaseRecord, 'owner' | 'releasedAt'>): boolean {
  return lease.owner?.kind === 'Pod' && stateOf(lease) === 'held';
}

/** For an address that nobody has a lease of. */
export function createLease(request: LeaseRequest): LeaseWrite {
  const { address, addressSpace, pool, owner } = request;
  const spec: AddressLeaseSpec = {
    address: formatAddress(address),
    addressSpace,
    pool,
    owner,
    ...omitUndefined(usageOf(request)),
  };
  const metadata = { name: leaseName(addressSpace, address), labels: leaseLabels(spec) };
  return { verb: 'create', lease: { apiVersion: IPAM_API_VERSION, kind: ADDRESS_LEASE_KIND, metadata, spec } };
}

/** Whether the request may have a lease that exists, as it stands; never one of another address or address space. The write decides. */
export function availabilityOf(
  record: LeaseRecord,
  request: LeaseRequest,
  times: LeaseTimes,
  now: number,
): Availability {
  const state = stateOf(record);
  const isRequestedAddress =
    record.addressSpace === request.addressSpace && sameAddress(record.address, request.address);
  // taking a lease that is being deleted is no use: it goes with its last finalizer
  if (!isRequestedAddress || state === 'held' || record.metadata.deletionTimestamp !== undefined)
    return { holder: record.owner ?? 'reserved' };
  if (isReservation(record) && !(record.pool === request.pool && hasRequestedMac(record, request)))
    return { holder: 'reserved' };
  if (state === 'reserved') return true;
  const until = allocatableFrom(record, request, times, now);
  return now >= until || { until };
}

/**
 * Makes a released or reserved lease that of the request; nothing of the earlier owner is left.
 * @throws {TypeError} where somebody holds it, or it is for another address or pool, or reserved for another MAC address or nobody
 */
export function reallocateLease(record: LeaseRecord, request: LeaseRequest): LeaseWrite {
  const { name } = record.metadata;
  if (stateOf(record) === 'held') throw new TypeError(`AddressLease ${name} is held: it cannot be taken`);
  if (leaseName(request.addressSpace, request.address) !== name || request.pool !== record.pool) {
    throw new TypeError(`AddressLease ${name} of pool ${record.pool} cannot become one of another address or pool`);
  }
  if (isReservation(record) && !hasRequestedMac(record, request)) {
    throw new TypeError(
      `AddressLease ${name} is reserved for ${record.mac ?? 'nobody'}: no other MAC address can take it`,
    );
  }
  const { owner, pool } = request;
  const usage = usageOf(request);
  const labels = leaseLabels({ address: formatAddress(request.address), pool, owner, ...omitUndefined(usage) });
  const reservation = stateOf(record) === 'reserved' ? { reserved: true } : {};
  return patchLease(record, {
    labels: { ...CLEARED_LABELS, ...labels },
    spec: {
      owner: { ...owner, workloadUID: owner.workloadUID ?? null },
      ...undefinedToNull(usage),
      ...reservation,
      releasedAt: null,
    },
  });
}

/** What of a held lease changes where its owner goes on using it elsewhere. */
export type LeaseUsage = Pick<LeaseRequest, 'node' | 'containerID' | 'interface' | 'mac'>;

/**
 * The same owner uses the address in another place from now on: a pod in its next sandbox.
 * @throws {TypeError} where nobody holds it
 */
export function updateLeaseUsage(record: LeaseRecord, usage: LeaseUsage): LeaseWrite {
  const { metadata, address, pool, owner } = record;
  if (owner === undefined || stateOf(record) !== 'held') {
    throw new TypeError(`AddressLease ${metadata.name} is ${stateOf(record)}: nobody uses it elsewhere`);
  }
  // what the static table says is not the owner's to change
  const fields = usageOf(isReservation(record) ? { ...usage, ...omitUndefined({ mac: record.mac }) } : usage);
  const labels = leaseLabels({ address: formatAddress(address), pool, owner, ...omitUndefined(fields) });
  return patchLease(record, { labels: { ...CLEARED_LABELS, ...labels }, spec: undefinedToNull(fields) });
}

/**
 * Ends the owner's right; the address cools down.
 * @param now milliseconds since the epoch
 * @throws {TypeError} where nobody holds it: a second release would start the cool-down again
 */
export function releaseLease(record: LeaseRecord, now: number): LeaseWrite {
  if (stateOf(record) !== 'held') {
    throw new TypeError(`AddressLease ${record.metadata.name} is ${stateOf(record)}: it cannot be released`);
  }
  return patchLease(record, { spec: { releasedAt: new Date(now).toISOString() } });
}

/**
 * The end of a released lease: it is deleted; where it is of the static table, reserved again, with nothing left of the last owner.
 * @throws {TypeError} where it is not released
 */
export function expireLease(record: LeaseRecord): LeaseWrite {
  const { metadata, address, pool, mac } = record;
  const { name, uid, resourceVersion } = metadata;
  if (stateOf(record) !== 'released')
    throw new TypeError(`AddressLease ${name} is ${stateOf(record)}: it cannot expire`);
  if (!isReservation(record)) return { verb: 'delete', name, uid, resourceVersion };
  const labels = leaseLabels({ address: formatAddress(address), pool, ...omitUndefined({ mac }) });
  const spec = { owner: null, node: null, containerID: null, interface: null, releasedAt: null };
  return patchLease(record, { labels: { ...CLEARED_LABELS, ...labels }, spec });
}

export function mayExpire(record: LeaseRecord, times: LeaseTimes, now: number): boolean {
  return record.metadata.deletionTimestamp === undefined && now >= expiresAt(record, times);
}

/** When a released lease has had its time ({@link expireLease}), in milliseconds since the epoch; Infinity for all others. */
export function expiresAt(record: LeaseRecord, times: LeaseTimes): number {
  if (record.releasedAt === undefined) return Infinity;
  const stickyMs = isSticky(record, times) && !isReservation(record) ? times.stickyMs : 0;
  return record.releasedAt + Math.max(times.cooldownMs, stickyMs);
}

/** Whether a lease without a living owner waits for its MAC address, for a time or for good. */
export function isSticky(record: LeaseRecord, { stickyMs, retainsClaims = false }: LeaseTimes): boolean {
  if (record.mac === undefined || isReservation(record)) return record.mac !== undefined;
  return stickyMs > 0 && (retainsClaims || record.owner?.kind !== 'IPAMClaim');
}

/**
 * Orders leases that are kept for one MAC address, as its owner has them: those of the static table, those of its own name, those of its namespace,
 * those of others; each the one released last first. MAC addresses are no secret: nobody's lease is to hide that of another namespace.
 */
export function byPreferenceOf({ namespace, name }: LeaseOwner): (a: LeaseRecord, b: LeaseRecord) => number {
  const rank = (record: LeaseRecord) => {
    if (isReservation(record)) return 3;
    if (record.owner?.namespace !== namespace) return 0;
    return record.owner.name === name ? 2 : 1;
  };
  return (a, b) => rank(b) - rank(a) || (b.releasedAt ?? 0) - (a.releasedAt ?? 0);
}

/** An admin made it, whoever has it now. */
export function isReservation(record: Pick<LeaseRecord, 'owner' | 'releasedAt' | 'reserved'>): boolean {
  return record.reserved === true || stateOf(record) === 'reserved';
}

/** The times that count where nothing else is free: an address waits for its MAC address no longer than it cools down. */
export function timesWhenExhausted(times: LeaseTimes): LeaseTimes {
  return { cooldownMs: times.cooldownMs, stickyMs: 0 };
}

/** From when on the request may have a released lease, in milliseconds since the epoch. */
function allocatableFrom(record: LeaseRecord, request: LeaseRequest, times: LeaseTimes, now: number): number {
  const { owner, pool, releasedAt = Infinity } = record;
  // pools never change: another pool of the address space gets the address only once this lease is gone
  if (pool !== request.pool) return Math.max(expiresAt(record, times), now + COLLECTOR_DELAY_MS);
  if (owner !== undefined && isSameWorkload(owner, request.owner)) return 0;
  if (!hasRequestedMac(record, request)) return expiresAt(record, times);
  return isReturningPod(record, request, times) ? 0 : releasedAt + times.cooldownMs;
}

/** A pod has come back with its MAC address. No agent answers from a cache what a pod had: there is nobody to protect it from. */
function isReturningPod(record: LeaseRecord, request: LeaseRequest, times: LeaseTimes): boolean {
  const { owner } = record;
  return owner?.kind === 'Pod' && owner.namespace === request.owner.namespace && isSticky(record, times);
}

/** Whom the cool-down protects others from. */
export function isSameWorkload(one: LeaseOwner, other: LeaseOwner): boolean {
  return one.uid === other.uid || (one.workloadUID !== undefined && one.workloadUID === other.workloadUID);
}

function hasRequestedMac({ mac }: LeaseRecord, request: LeaseRequest): boolean {
  return mac !== undefined && mac === request.mac?.toLowerCase();
}

function usageOf({ node, containerID, interface: podInterface, mac }: LeaseUsage) {
  return { node, containerID, interface: podInterface, mac: mac?.toLowerCase() };
}

function patchLease(
  { metadata: { name, uid, resourceVersion } }: LeaseRecord,
  { labels, spec }: { labels?: object; spec: object },
): LeaseWrite {
  return { verb: 'patch', name, body: { metadata: { uid, resourceVersion, ...omitUndefined({ labels }) }, spec } };
}

function parseTime(name: string, text: string): number {
  const time = Date.parse(text);
  if (Number.isNaN(time)) {
    throw new TypeError(
      `AddressLease ${name}: spec.releasedAt "${text}" is no time; write it like 2006-01-02T15:04:05Z`,
    );
  }
  return time;
}

type WithoutUndefined<T> = { [K in keyof T]?: Exclude<T[K], undefined> };

/** Without the fields that are undefined. */
function omitUndefined<T extends object>(fields: T): WithoutUndefined<T> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as WithoutUndefined<T>;
}

function undefinedToNull(fields: object): object {
  return Object.fromEntries(Object.entries(fields).map(([field, value]) => [field, (value as unknown) ?? null]));
}
