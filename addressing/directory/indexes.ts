import type { Address } from '../address/address.js';
import { type Cidr, networkOf } from '../address/cidr.js';
import type { Pool } from '../pool/pool.js';

/** By prefix length and first address: the names of the pools that have this subnet. */
type Subnets = Map<number, Map<bigint, Set<string>>>;

/**
 * Knows which pools have subnets with an address. An answer costs a lookup for each prefix length in the address space, however many pools
 * there are: it is needed for each lease, and every tenant may add pools to a space.
 */
export class SubnetIndex {
  /** By address space and family. */
  readonly #spaces = new Map<string, Subnets>();

  add(pool: Pool): void {
    for (const { cidr } of pool.subnets) {
      const key = spaceKey(pool, cidr);
      const lengths = this.#spaces.get(key) ?? new Map<number, Map<bigint, Set<string>>>();
      const subnets = lengths.get(cidr.prefixLength) ?? new Map<bigint, Set<string>>();
      const names = subnets.get(cidr.base) ?? new Set<string>();
      this.#spaces.set(key, lengths.set(cidr.prefixLength, subnets.set(cidr.base, names.add(pool.name))));
    }
  }

  delete(pool: Pool): void {
    for (const { cidr } of pool.subnets) {
      const key = spaceKey(pool, cidr);
      const lengths = this.#spaces.get(key);
      if (lengths !== undefined && isEmptyWithout(pool.name, cidr, lengths)) this.#spaces.delete(key);
    }
  }

  poolsContaining(addressSpace: string, address: Address): readonly string[] {
    const found = new Set<string>();
    for (const [prefixLength, subnets] of this.#spaces.get(spaceKey({ addressSpace }, address)) ?? []) {
      for (const name of subnets.get(networkOf(address, prefixLength).base) ?? []) found.add(name);
    }
    return [...found];
  }
}

/** Removes the subnet of a pool. */
function isEmptyWithout(pool: string, { prefixLength, base }: Cidr, lengths: Subnets): boolean {
  const subnets = lengths.get(prefixLength);
  const names = subnets?.get(base);
  names?.delete(pool);
  if (names?.size === 0) subnets?.delete(base);
  if (subnets?.size === 0) lengths.delete(prefixLength);
  return lengths.size === 0;
}

function spaceKey({ addressSpace }: Pick<Pool, 'addressSpace'>, { family }: Pick<Address, 'family'>): string {
  return `${family}/${addressSpace}`;
}

/** Values by group and key. A group without values does not exist. */
export class GroupedIndex<T> {
  readonly #groups = new Map<string, Map<string, T>>();

  set(group: string, key: string, value: T): void {
    const values = this.#groups.get(group) ?? new Map<string, T>();
    this.#groups.set(group, values.set(key, value));
  }

  delete(group: string, key: string): void {
    const values = this.#groups.get(group);
    values?.delete(key);
    if (values?.size === 0) this.#groups.delete(group);
  }

  /** Returns the values of a group in the order in which their keys came. */
  of(group: string): readonly T[] {
    return [...(this.#groups.get(group)?.values() ?? [])];
  }
}
