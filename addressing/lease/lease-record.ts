import type {
  AddressLease,
  AddressLeaseSpec,
  LeaseNetworkData,
  LeaseOwner,
  LeaseQuarantine,
  LeaseState,
} from '../../api/address-lease.js';
import { type IPAMClaim, claimOwnerOf, labelValue } from '../../api/ipam-claim.js';
import { parseLeaseMac } from '../../api/mac-address.js';
import type { KubeObject, ObjectMeta } from '../../api/meta.js';
import {
  IPAM_CLAIM_KIND,
  LEASE_FAMILY,
  LEASE_MAC,
  LEASE_NODE,
  LEASE_OWNER_KIND,
  LEASE_OWNER_NAME,
  LEASE_OWNER_NAMESPACE,
  LEASE_OWNER_UID,
  LEASE_POOL,
} from '../../api/names.js';
import { type ProbeState, readProbe } from '../../api/probe.js';
import { type Address, formatFamily, parseAddress } from '../address/address.js';
import { leaseName } from './lease-name.js';

/** A parsed AddressLease, as caches keep it. */
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
  /** An administrator reserved the address for the MAC address. After its owner it is reserved again. */
  reserved?: true;
  /** By the clock of the process that released it, in milliseconds since the epoch. */
  releasedAt?: number;
  /** Nobody gets the address until the lease expires. Times by the clock of the process that wrote it, in milliseconds since the epoch. */
  quarantine?: QuarantineRecord;
  /** The Secret that may hold the address, which no other VM gets until then. */
  networkData?: LeaseNetworkData;
  /** Absent if the address was never probed. */
  probe?: ProbeState;
  /** When the cool-down began by the clock of this process. Absent if it only read the lease. See {@link withCoolingStart}. */
  coolsSince?: number;
}

/** The fields whose presence determines the state, of a record or of the spec of an AddressLease. */
export interface LeaseStateFields {
  readonly owner?: unknown;
  readonly releasedAt?: unknown;
  readonly quarantine?: unknown;
}

/** Who has the address, as a responder found, and for how long nobody gets it. */
interface QuarantineRecord {
  readonly since: number;
  readonly until: number;
  /** Lower case, with colons. */
  readonly mac: string;
}

/**
 * Parses a lease.
 * @throws {TypeError} if Holdfast cannot have made the object; the message names the lease and the field
 */
export function readLease({ metadata, spec }: AddressLease): LeaseRecord {
  const { name, uid, resourceVersion, creationTimestamp, deletionTimestamp } = metadata;
  if (!uid || !resourceVersion) throw new TypeError(`AddressLease ${name} has no uid or resourceVersion`);
  const address = parseAddress(spec.address);
  const expected = leaseName(spec.addressSpace, address);
  // the name is the lock: with any other name the object locks nothing
  if (name !== expected) {
    throw new TypeError(
      `AddressLease ${name}: the lease for spec.address ${spec.address} in spec.addressSpace ${spec.addressSpace} must have the name ${expected}`,
    );
  }
  const record: LeaseRecord = {
    metadata:
      creationTimestamp === undefined
        ? { name, uid, resourceVersion }
        : { name, uid, resourceVersion, creationTimestamp },
    addressSpace: spec.addressSpace,
    address,
    pool: spec.pool,
  };
  if (deletionTimestamp !== undefined) record.metadata.deletionTimestamp = deletionTimestamp;
  addOwner(record, spec);
  addState(record, spec);
  const probe = readProbe(metadata);
  if (probe !== undefined) record.probe = probe;
  return record;
}

/** Assigns: an object that is built from spreads takes twice the CPU time, and there are hundreds of thousands. */
function addOwner(record: LeaseRecord, spec: AddressLeaseSpec): void {
  if (spec.owner !== undefined) record.owner = spec.owner;
  if (spec.node !== undefined) record.node = spec.node;
  if (spec.containerID !== undefined) record.containerID = spec.containerID;
  if (spec.interface !== undefined) record.interface = spec.interface;
  const mac = spec.mac?.toLowerCase();
  if (mac !== undefined) record.mac = mac;
}

function addState(record: LeaseRecord, { reserved, releasedAt, quarantine, networkData }: AddressLeaseSpec): void {
  const { name } = record.metadata;
  if (reserved === true) record.reserved = true;
  if (releasedAt !== undefined) record.releasedAt = parseTime(name, 'releasedAt', releasedAt);
  if (quarantine !== undefined) record.quarantine = readQuarantine(name, quarantine);
  if (networkData !== undefined) record.networkData = networkData;
}

export function stateOf({ owner, releasedAt, quarantine }: LeaseStateFields): LeaseState {
  if (quarantine !== undefined) return 'quarantined';
  if (releasedAt !== undefined) return 'released';
  return owner === undefined ? 'reserved' : 'held';
}

function readQuarantine(name: string, { since, until, mac }: LeaseQuarantine): QuarantineRecord {
  const parsedMac = parseLeaseMac(mac);
  if (parsedMac === undefined) throw new TypeError(`AddressLease ${name}: spec.quarantine.mac is not a MAC address`);
  const read = (field: 'since' | 'until', text: string) => parseTime(name, `quarantine.${field}`, text);
  return { since: read('since', since), until: read('until', until), mac: parsedMac };
}

function parseTime(name: string, field: string, text: string): number {
  const time = Date.parse(text);
  if (Number.isNaN(time)) {
    throw new TypeError(
      `AddressLease ${name}: spec.${field} "${text}" is not a time: write it like 2006-01-02T15:04:05Z`,
    );
  }
  return time;
}

/** True if an administrator made the lease, held now or not. */
export function isReservation(record: LeaseStateFields & Pick<LeaseRecord, 'reserved'>): boolean {
  return record.reserved === true || stateOf(record) === 'reserved';
}

/**
 * True if both are the same owner or belong to the same workload, which need not wait for the cool-down. Who creates a VMI writes the UID of its VM, so
 * the UID counts only in the namespace of the workload.
 */
export function isSameWorkload(one: LeaseOwner, other: LeaseOwner): boolean {
  const isOfVm = one.workloadUID !== undefined && one.workloadUID === other.workloadUID;
  return one.uid === other.uid || (isOfVm && one.namespace === other.namespace);
}

/** Returns the labels by which a lease can be selected. */
export function leaseLabels(
  spec: Pick<AddressLeaseSpec, 'address' | 'pool' | 'owner' | 'node' | 'mac'>,
): Record<string, string> {
  const { owner } = spec;
  const values: Record<string, string | undefined> = {
    [LEASE_POOL]: spec.pool,
    [LEASE_FAMILY]: formatFamily(parseAddress(spec.address).family),
    [LEASE_NODE]: spec.node,
    [LEASE_OWNER_KIND]: owner?.kind,
    [LEASE_OWNER_NAMESPACE]: owner?.namespace,
    [LEASE_OWNER_NAME]: owner?.name,
    [LEASE_OWNER_UID]: owner?.uid,
    [LEASE_MAC]: spec.mac?.toLowerCase().replaceAll(':', '-'),
  };
  return Object.fromEntries(
    Object.entries(values).flatMap(([label, value]) => (value === undefined ? [] : [[label, labelValue(value)]])),
  );
}

/** Removes the labels of an earlier owner in a merge patch, which keeps all labels that it does not name. */
export const CLEARED_LABELS = Object.fromEntries(
  [LEASE_NODE, LEASE_OWNER_KIND, LEASE_OWNER_NAMESPACE, LEASE_OWNER_NAME, LEASE_OWNER_UID, LEASE_MAC].map((label) => [
    label,
    null,
  ]),
);

/** Limits of the CRD. The values come from objects that others may have written. */
export const MAX_INTERFACE = 15;
const MAX_UID = 128;

export function leaseOwnerOf(claim: IPAMClaim): LeaseOwner {
  const { namespace = '', name, uid = '' } = claim.metadata;
  const workloadUID = claimOwnerOf(claim)?.uid;
  const isUid = workloadUID !== undefined && workloadUID !== '' && workloadUID.length <= MAX_UID;
  return { kind: IPAM_CLAIM_KIND, namespace, name, uid, ...(isUid && { workloadUID }) };
}

/** The part of a LeaseRequest that is used here. */
interface TakeoverRequest {
  readonly owner: LeaseOwner;
  readonly launchers?: ReadonlySet<string>;
}

/**
 * True if the lease may pass from a launcher, which holds it, to the claim of its VM. One write changes the owner, so that the address is
 * never free in between: the VM runs with it.
 */
export function mayTakeOver(
  { owner, releasedAt }: Pick<LeaseRecord, 'owner' | 'releasedAt'>,
  request: TakeoverRequest,
): boolean {
  if (owner?.kind !== 'Pod' || releasedAt !== undefined) return false;
  const isOfNamespace = owner.namespace === request.owner.namespace && request.owner.kind === 'IPAMClaim';
  return isOfNamespace && request.launchers?.has(owner.uid) === true;
}

/** Returns the fields with null instead of undefined, for a merge patch that removes them. */
export function undefinedToNull(fields: object): object {
  return Object.fromEntries(Object.entries(fields).map(([field, value]) => [field, (value as unknown) ?? null]));
}

/**
 * Orders the leases that are kept for an owner or its MAC address by preference: reservations, leases of the owner's name, of its
 * namespace, of others; each group latest release first. MAC addresses are not secret, so the own namespace comes before others.
 */
export function byPreferenceOf({ namespace, name }: LeaseOwner): (a: LeaseRecord, b: LeaseRecord) => number {
  const rank = (record: LeaseRecord) => {
    if (isReservation(record)) return 3;
    if (record.owner?.namespace !== namespace) return 0;
    return record.owner.name === name ? 2 : 1;
  };
  return (a, b) => rank(b) - rank(a) || (b.releasedAt ?? 0) - (a.releasedAt ?? 0);
}
