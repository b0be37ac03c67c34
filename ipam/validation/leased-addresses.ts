import { compareAddresses } from '../../addressing/address/address.js';
import { isHeldOrReserved } from '../../addressing/lease/lease.js';
import { type Pool, isLeasable } from '../../addressing/pool/pool.js';
import { type AddressPool, addressSpaceOf } from '../../api/address-pool.js';
import { formatLeases } from '../pools/named-leases.js';
import { inheritedLeasesOf } from '../pools/inherited-leases.js';
import type { PoolLease, PoolLeases, ValidationRefusal, ValidationView } from './review.js';

/** A valid pool, and what it was before the change. */
export interface PoolChange {
  readonly pool: AddressPool;
  readonly after: Pool;
  readonly oldPool?: AddressPool | undefined;
  /** The old pool, if it was valid. */
  readonly before?: Pool | undefined;
  /** The namespace of the NAD that the pool is derived from: its users read the refusal. */
  readonly reader?: string;
}

type ChangeView = Pick<ValidationView, 'leases' | 'networks'>;

/** Refuses changes that would take a leased address out of its network, address space or pool. */
export function refuseLeaseLosses(change: PoolChange, view: ChangeView): ValidationRefusal[] {
  return [...refuseMove(change, view.leases), ...refuseShrink(change, view)];
}

function refuseMove({ pool, after, oldPool, reader }: PoolChange, leases: PoolLeases): ValidationRefusal[] {
  const { name } = after;
  const all = [...leases.ofPool(name)];
  const held = unreleased(all);
  if (oldPool !== undefined && oldPool.spec.network !== after.network && held.length > 0) {
    const message =
      `spec.network: changing "${oldPool.spec.network}" to "${after.network}" would take ${countLeases(held)} out of the network: ` +
      `${describeLeases(held, reader)}. Create another pool for "${after.network}"`;
    return [{ check: 'network', message }];
  }
  if (oldPool !== undefined && addressSpaceOf(oldPool) === addressSpaceOf(pool)) return [];
  // released leases count: in another address space they would not keep others from their addresses
  const elsewhere = all.filter(({ addressSpace }) => addressSpace !== after.addressSpace);
  if (elsewhere.length === 0) return [];
  const message =
    `spec.addressSpace: AddressPool ${name} has leases in "${elsewhere[0]?.addressSpace ?? ''}", and their addresses could be allocated again in "${after.addressSpace}": ` +
    `${describeLeases(elsewhere, reader)}. Keep the address space until they are gone, or create a pool with another name`;
  return [{ check: 'address-space', message }];
}

function refuseShrink({ before, after, reader }: PoolChange, { leases, networks }: ChangeView): ValidationRefusal[] {
  const inherited = before && inheritedLeasesOf(before, networks);
  const lost = [after.name, ...(inherited?.pools ?? [])].flatMap((name) => {
    const left = leasesLeftOut(before, after, leases.ofPool(name));
    return name === after.name ? left : left.filter((lease) => inherited?.includes(lease));
  });
  if (lost.length === 0) return [];
  const message =
    `spec.subnets: ${countLeases(lost)} would no longer be in the pool: ${describeLeases(lost, reader)}. ` +
    `Keep them in spec.subnets (in draining, if their owners are to get other addresses), or delete their owners first`;
  return [{ check: 'shrink', message }];
}

/** Leases that are held or reserved. */
export function unreleased(leases: Iterable<PoolLease>): PoolLease[] {
  return [...leases].filter(isHeldOrReserved);
}

/**
 * Unreleased leases whose address a pool would no longer have.
 * @param before the pool before the change, if it was valid: an address that it lacked already is not lost by the change
 */
function leasesLeftOut(before: Pool | undefined, after: Pool, leases: Iterable<PoolLease>): PoolLease[] {
  return unreleased(leases).filter(
    ({ address }) => !isLeasable(after, address) && (before === undefined || isLeasable(before, address)),
  );
}

/** Formats leases in the order of their addresses: see {@link formatLeases}. */
export function describeLeases(leases: readonly PoolLease[], reader?: string): string {
  return formatLeases(
    [...leases].sort((a, b) => compareAddresses(a.address, b.address)),
    leases.length,
    reader,
  );
}

/** Formats a number of leases, as `1 leased address`. */
export function countLeases({ length }: readonly PoolLease[]): string {
  return length === 1 ? '1 leased address' : `${length} leased addresses`;
}
