import { isDeepStrictEqual } from 'node:util';
import type { AddressLease, AddressLeaseSpec } from '../api/address-lease.js';
import { readLease } from '../addressing/lease/lease.js';
import { StatusError } from '../kube/errors.js';
import type { ApiRequest, ClientTransport } from '../kube/transport.js';
import { type Preconditions, checkPreconditions } from './api-errors.js';
import { mergePatch } from './merge-patch.js';

/** An event of a watch. */
export type LeaseEvent =
  { readonly gone: false; readonly lease: AddressLease } | { readonly gone: true; readonly name: string };

/** Called with the lease before and after each write; undefined if there is none. */
export type LeaseObserver = (before: AddressLease | undefined, after: AddressLease | undefined) => void;

const PATH = /\/addressleases(?:\/([^/]+))?$/;

/**
 * A simulated API server for AddressLeases. It enforces unique names, preconditions of uid and resourceVersion, and the rules of the
 * CRD. Readers read only the `log`, so that each can be as stale as a test needs.
 */
export class LeaseServer implements ClientTransport {
  readonly leases = new Map<string, AddressLease>();
  readonly log: LeaseEvent[] = [];
  readonly #observe: LeaseObserver;
  #version = 0;

  constructor(observe: LeaseObserver = () => undefined) {
    this.#observe = observe;
  }

  // eslint-disable-next-line @typescript-eslint/require-await -- a transport rejects
  async request(request: ApiRequest): Promise<unknown> {
    const name = PATH.exec(request.path)?.[1];
    switch (request.method) {
      case 'POST':
        return structuredClone(this.#create(request.body as AddressLease));
      case 'PATCH':
        return structuredClone(this.#patch(this.#find(name), request.body as { metadata?: Preconditions }));
      case 'DELETE':
        this.#delete(this.#find(name), (request.body as { preconditions?: Preconditions }).preconditions);
        return undefined;
      default:
        throw new TypeError(`${request.method} ${request.path} is not simulated`);
    }
  }

  stream(): never {
    throw new TypeError('this API has no watches: readers read the log');
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  #find(name = ''): AddressLease {
    const found = this.leases.get(name);
    if (found === undefined) throw refusal(404, 'NotFound', name);
    return found;
  }

  #create(made: AddressLease): AddressLease {
    const { name } = made.metadata;
    if (this.leases.has(name)) throw refusal(409, 'AlreadyExists', name);
    const uid = `lease-${this.#version + 1}`;
    return this.#store(undefined, { ...made, metadata: { ...made.metadata, uid } });
  }

  #patch(found: AddressLease, body: { metadata?: Preconditions }): AddressLease {
    checkPreconditions(found, body.metadata);
    const changed = structuredClone(found);
    mergePatch(changed, body);
    const words = refuseChange(found.spec, changed.spec);
    if (words !== undefined) throw refusal(422, 'Invalid', words);
    return this.#store(found, changed);
  }

  #delete(found: AddressLease, preconditions: Preconditions | undefined): void {
    checkPreconditions(found, preconditions);
    const { name } = found.metadata;
    this.leases.delete(name);
    this.#version += 1;
    this.log.push({ gone: true, name });
    this.#observe(found, undefined);
  }

  #store(before: AddressLease | undefined, given: AddressLease): AddressLease {
    const lease = structuredClone(given);
    lease.metadata.resourceVersion = String(++this.#version);
    const words = refuseSpec(lease);
    if (words !== undefined) throw refusal(422, 'Invalid', words);
    this.leases.set(lease.metadata.name, lease);
    this.log.push({ gone: false, lease });
    this.#observe(before, lease);
    return lease;
  }
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
    readLease(lease);
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
  if (before.owner === undefined) return true;
  if (after.owner === undefined)
    return after.quarantine !== undefined || (before.reserved === true && before.releasedAt !== undefined);
  const keys = ['kind', 'namespace', 'name', 'uid', 'workloadUID'] as const;
  const isSame = keys.every((key) => before.owner?.[key] === after.owner?.[key]);
  const isTakenOver =
    before.owner.kind === 'Pod' && after.owner.kind === 'IPAMClaim' && before.owner.namespace === after.owner.namespace;
  return isSame || (after.releasedAt === undefined && (before.releasedAt !== undefined || isTakenOver));
}

function refuseOwner({ owner, releasedAt }: AddressLeaseSpec): string {
  const holder = `the address belongs to ${owner?.kind} ${owner?.namespace}/${owner?.name} (uid ${owner?.uid})`;
  return releasedAt === undefined
    ? `spec.owner: ${holder}, which has not released it: set releasedAt first`
    : `spec.owner: ${holder}, which released it: to allocate it to another owner, clear releasedAt in the same write`;
}

function refusal(status: number, reason: string, message: string): StatusError {
  return new StatusError({ request: 'the model', status, reason, message });
}
