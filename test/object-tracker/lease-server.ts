import { isDeepStrictEqual } from 'node:util';
import type { AddressLease, AddressLeaseSpec, LeaseOwner } from '../../api/address-lease.js';
import { readLease } from '../../addressing/lease/lease.js';
import { ADDRESS_LEASES } from '../../kube/resources.js';
import { MemoryTransport } from '../../kube/testing/memory-transport.js';
import type { Admission } from '../../kube/testing/object-tracker.js';
import { INVALID, refusal } from '../../kube/testing/refusals.js';

/** Called with the lease before and after each write; undefined if there is none. */
export type LeaseObserver = (before: AddressLease | undefined, after: AddressLease | undefined) => void;

/** An API server with the rules of the CRD of AddressLeases. */
export class LeaseServer extends MemoryTransport {
  constructor(observe: LeaseObserver = () => undefined) {
    super();
    this.tracker.admit = checkWrite;
    this.tracker.observe(ADDRESS_LEASES, ({ type, before, object }) =>
      observe(before, type === 'DELETED' ? undefined : object),
    );
  }

  get leases(): ReadonlyMap<string, AddressLease> {
    return this.tracker.objects(ADDRESS_LEASES);
  }
}

function checkWrite({ kind, before, after }: Admission): void {
  if (kind.plural !== ADDRESS_LEASES.plural || after === undefined) return;
  const [was, is] = [before as AddressLease | undefined, after as AddressLease];
  const words = (was && refuseChange(was.spec, is.spec)) ?? refuseSpec(is);
  if (words !== undefined) throw refusal(kind, is.metadata.name, INVALID, `is invalid: ${words}`);
}

/** The CRD's rules about one state. */
function refuseSpec(lease: AddressLease): string | undefined {
  const { owner, releasedAt, reserved, mac, quarantine } = lease.spec;
  const isSomebodys = [owner, releasedAt, reserved, mac].some((field) => field !== undefined) || isUsed(lease.spec);
  if (quarantine !== undefined && isSomebodys) return 'spec.quarantine: a quarantined address belongs to nobody';
  if (quarantine !== undefined && Date.parse(quarantine.since) >= Date.parse(quarantine.until))
    return 'spec.quarantine.until: until is not after since: write a later time';
  if (owner === undefined && releasedAt !== undefined) return 'spec.releasedAt: set owner too';
  if (reserved !== undefined && mac === undefined) return 'spec.reserved: set mac too';
  try {
    // a new object has no version before it is stored
    readLease({ ...lease, metadata: { ...lease.metadata, resourceVersion: 'any' } });
    return undefined;
  } catch (error) {
    return String(error);
  }
}

/** The CRD's transition rules. */
function refuseChange(before: AddressLeaseSpec, after: AddressLeaseSpec): string | undefined {
  for (const field of ['address', 'addressSpace', 'pool'] as const) {
    if (before[field] !== after[field]) {
      return `${field} of a lease cannot be changed (${before[field]} to ${after[field]})`;
    }
  }
  if (before.releasedAt !== undefined && after.releasedAt !== undefined && before.releasedAt !== after.releasedAt) {
    return 'releasedAt cannot be changed';
  }
  const quarantined = refuseQuarantine(before, after);
  if (quarantined !== undefined) return quarantined;
  if (!mayHaveOwner(before, after)) return refuseOwner(before);
  return refuseReservationChange(before, after);
}

/** The rules for quarantined addresses. */
function refuseQuarantine(before: AddressLeaseSpec, after: AddressLeaseSpec): string | undefined {
  if (before.quarantine !== undefined && !isDeepStrictEqual(before.quarantine, after.quarantine)) {
    return `spec.quarantine: the address is quarantined, because ${before.quarantine.mac} has it: delete the lease to make the address free`;
  }
  if (after.quarantine === undefined || before.quarantine !== undefined) return undefined;
  const wasHeld = before.owner !== undefined && before.releasedAt === undefined;
  return wasHeld ? undefined : 'spec.quarantine: only an address that is held can be quarantined';
}

/** The rules for reservations. */
function refuseReservationChange(before: AddressLeaseSpec, after: AddressLeaseSpec): string | undefined {
  const keepsIt = after.reserved === true && before.mac !== undefined && after.mac === before.mac;
  if (before.owner === undefined) return keepsIt || after.owner === undefined ? undefined : refuseReallocation(before);
  if (before.reserved === true && !keepsIt)
    return `spec.reserved: the address is reserved for MAC address ${before.mac}: leave reserved and mac unchanged`;
  if (before.reserved !== after.reserved) {
    return 'spec.reserved: a lease that has an owner cannot become a reservation: omit reserved';
  }
  return after.owner === undefined && after.quarantine === undefined && isUsed(after)
    ? 'spec.owner: a lease without an owner is not in use'
    : undefined;
}

function isUsed({ node, containerID, interface: podInterface }: AddressLeaseSpec): boolean {
  return [node, containerID, podInterface].some((field) => field !== undefined);
}

function refuseReallocation({ mac }: AddressLeaseSpec): string {
  return mac === undefined
    ? 'spec.owner: the address is reserved without a MAC address: delete the lease to make the address free'
    : `spec.owner: the address is reserved for MAC address ${mac}: to allocate it, keep mac and set reserved in the same write`;
}

function mayHaveOwner(before: AddressLeaseSpec, after: AddressLeaseSpec): boolean {
  const { owner: was } = before;
  const { owner: is } = after;
  if (was === undefined) return true;
  if (is === undefined)
    return after.quarantine !== undefined || (before.reserved === true && before.releasedAt !== undefined);
  const keeps = (...keys: readonly (keyof LeaseOwner)[]) => keys.every((key) => was[key] === is[key]);
  if (keeps('kind', 'namespace', 'name', 'uid', 'workloadUID')) return true;
  if (after.releasedAt !== undefined) return false;
  const isOfClaim = is.kind === 'IPAMClaim' && keeps('namespace');
  return before.releasedAt !== undefined || (isOfClaim && (was.kind === 'Pod' || keeps('name', 'uid')));
}

function refuseOwner({ owner, releasedAt }: AddressLeaseSpec): string {
  const holder = `the address belongs to ${owner?.kind} ${owner?.namespace}/${owner?.name} (uid ${owner?.uid})`;
  return releasedAt === undefined
    ? `spec.owner: ${holder}, which has not released it: set releasedAt first`
    : `spec.owner: ${holder}, which released it: to allocate it to another owner, clear releasedAt in the same write`;
}
