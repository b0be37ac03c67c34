import { type AddressPool, addressSpaceOf } from '../../api/address-pool.js';
import type { Pool } from '../core/pool.js';
import { countLeases, describeLeases, leasesLeftOut, unreleased } from './unreleased-leases.js';
import type { ReviewRefusal } from './review-result.js';
import type { PoolLeases } from './view.js';

/** A pool that can be served, and what it was. */
export interface PoolChange {
  readonly pool: AddressPool;
  readonly after: Pool;
  readonly oldPool?: AddressPool | undefined;
  /** The old pool, where it could be served. */
  readonly before?: Pool | undefined;
  /** The namespace of the NAD that the pool is derived from: its tenants read the refusal. */
  readonly reader?: string;
}

/** A change must leave every leased address where it is: in its network, its address space and its pool. */
export function refuseLeaseLosses(change: PoolChange, leases: PoolLeases): ReviewRefusal[] {
  return [...refuseMove(change, leases), ...refuseShrink(change, leases)];
}

function refuseMove({ pool, after, oldPool, reader }: PoolChange, leases: PoolLeases): ReviewRefusal[] {
  const { name } = after;
  const all = [...leases.ofPool(name)];
  const held = unreleased(all);
  if (oldPool !== undefined && oldPool.spec.network !== after.network && held.length > 0) {
    const message =
      `spec.network: "${after.network}" instead of "${oldPool.spec.network}" would take ${countLeases(held)} from their network: ` +
      `${describeLeases(held, reader)}. Make another pool for "${after.network}"`;
    return [{ check: 'network', message }];
  }
  if (oldPool !== undefined && addressSpaceOf(oldPool) === addressSpaceOf(pool)) return [];
  // those that cool down count: in another address space nothing would keep others from their addresses
  const elsewhere = all.filter(({ addressSpace }) => addressSpace !== after.addressSpace);
  if (elsewhere.length === 0) return [];
  const message =
    `spec.addressSpace: AddressPool ${name} has leases in "${elsewhere[0]?.addressSpace ?? ''}", which would guard nothing in "${after.addressSpace}": ` +
    `${describeLeases(elsewhere, reader)}. Keep the address space until they are gone, or make a pool of another name`;
  return [{ check: 'address-space', message }];
}

function refuseShrink({ before, after, reader }: PoolChange, leases: PoolLeases): ReviewRefusal[] {
  const lost = leasesLeftOut(before, after, leases.ofPool(after.name));
  if (lost.length === 0) return [];
  const message =
    `spec.subnets: ${countLeases(lost)} would not be in the pool: ${describeLeases(lost, reader)}. ` +
    `Keep them in it (in reserved, if nobody shall get them later), or delete their owners first`;
  return [{ check: 'shrink', message }];
}
