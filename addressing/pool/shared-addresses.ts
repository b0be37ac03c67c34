import type { Address } from '../address/address.js';
import { overlap } from '../address/cidr.js';
import type { Pool } from './pool.js';
import type { Subnet } from './subnet.js';

/** Returns the pairs of subnets with addresses in common, leasable or not. Tenants decide how many ranges a subnet has, so most pools are told apart by CIDRs alone. */
export function* overlappingSubnets(one: Pool, other: Pool): Generator<[Subnet, Subnet]> {
  for (const ours of one.subnets)
    for (const theirs of other.subnets) if (overlap(ours.cidr, theirs.cidr)) yield [ours, theirs];
}

/** Returns an address that both pools can lease: the first one of a subnet. Their address spaces do not matter. */
export function firstSharedAddress(one: Pool, other: Pool): Address | undefined {
  for (const [{ cidr, leasable }, theirs] of overlappingSubnets(one, other)) {
    const value = leasable.firstShared(theirs.leasable);
    if (value !== undefined) return { family: cidr.family, value };
  }
  return undefined;
}
