import { isBeingDeleted } from '../../api/meta.js';
import { type Address, type Family, sameAddress } from '../core/address.js';
import type { LeaseRecord } from '../core/lease.js';
import type { Observed } from './observe.js';
import { requestOf, shownBy } from './requests.js';

/** Which addresses a claim shall have, and what of it it has. */
export interface Wanted {
  /** Of what it has, what stays: at most one lease a family, IPv4 first. */
  keep: readonly LeaseRecord[];
  /** Without these it is not served. `addresses` exactly, and any one address of each of `families`. */
  missing: { addresses: readonly Address[]; families: readonly Family[] };
  /** What it asks for in place of, or besides, what it keeps. */
  pending: readonly Address[];
  /** Of `pending`, what it has no lease of yet. */
  untaken: readonly Address[];
  /** Nothing uses the claim, so that its addresses may change. */
  movable: boolean;
  /** What it has and shall not keep. */
  surplus: readonly LeaseRecord[];
  /** What its status shows. */
  shown: readonly Address[];
  /** What in its texts cannot be read. */
  problems: { request?: string; status?: string };
}

const BOTH: readonly Family[] = [4, 6];

/**
 * What the status shows stays, or is taken back, for a pod may use it; what a request names instead takes its place once nothing uses the claim and
 * all of it is had. A claim that shows nothing gets what it asks for, and what is left to choose of each family of the pool.
 */
export function wantedBy(observed: Observed): Wanted {
  const { claim, held, users } = observed;
  const request = requestOf(claim);
  const shown = shownBy(claim);
  const asked = request.kind === 'addresses' ? request.addresses : [];
  const movable = users.length === 0 && !isBeingDeleted(claim);
  const follows = movable && asked.length > 0 && asked.every((address) => isHeld(address, held));
  const sources = follows ? [asked, shown.addresses] : [shown.addresses, shown.addresses.length === 0 ? asked : []];
  const families = familiesOf(observed, { shown: shown.addresses, asked, follows });
  const targets = families.map((family) => targetOf(family, sources, held));
  const keep = targets.flatMap(({ lease }) => lease ?? []);
  const pending = asked.filter(
    (address) => !targets.some((target) => target.address !== undefined && sameAddress(target.address, address)),
  );
  const absent = targets.filter(({ lease }) => lease === undefined);
  return {
    keep,
    missing: {
      addresses: absent.flatMap(({ address }) => address ?? []),
      families: absent.flatMap(({ family, address }) => (address === undefined ? [family] : [])),
    },
    pending: isBeingDeleted(claim) ? [] : pending,
    untaken: pending.filter((address) => !isHeld(address, held)),
    movable,
    surplus: held.filter((lease) => !keep.includes(lease)),
    shown: shown.addresses,
    problems: {
      ...(request.kind === 'invalid' && { request: request.problem }),
      ...(shown.problem !== undefined && { status: shown.problem }),
    },
  };
}

interface Texts {
  shown: readonly Address[];
  asked: readonly Address[];
  follows: boolean;
}

/** A claim that has been served keeps its families: a VM's interface does not grow when its pool does. One that ends gets nothing new. */
function familiesOf({ claim, held, resolution }: Observed, { shown, asked, follows }: Texts): readonly Family[] {
  const has = (addresses: readonly Address[], family: Family) => addresses.some((address) => address.family === family);
  const heldAddresses = held.map(({ address }) => address);
  const pool = resolution.kind === 'served' ? resolution.pool.families : undefined;
  return BOTH.filter((family) => {
    if (shown.length > 0) return has(shown, family) || (follows && has(asked, family));
    if (isBeingDeleted(claim)) return has(heldAddresses, family);
    return (pool?.includes(family) ?? has(heldAddresses, family)) || has(asked, family);
  });
}

interface Target {
  family: Family;
  /** Undefined: any. */
  address?: Address;
  lease?: LeaseRecord;
}

/** The address that the first of the sources names, else the oldest lease of the family. */
function targetOf(family: Family, sources: readonly (readonly Address[])[], held: readonly LeaseRecord[]): Target {
  const [named] = sources.flatMap((addresses) => addresses.filter((address) => address.family === family));
  const lease = held.find(({ address }) =>
    named === undefined ? address.family === family : sameAddress(address, named),
  );
  const address = named ?? lease?.address;
  return { family, ...(address && { address }), ...(lease && { lease }) };
}

function isHeld(address: Address, held: readonly LeaseRecord[]): boolean {
  return held.some((lease) => sameAddress(lease.address, address));
}
