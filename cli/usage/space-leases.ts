import type { Family } from '../../addressing/address/address.js';
import { type Range, lastIndexWhere } from '../../addressing/address/ranges.js';
import type { LeaseRecord } from '../../addressing/lease/lease.js';
import { groupBy } from '../group-by.js';

/** The leases of one address space. Many pools may share it, so no pool looks at the leases of the others one by one. */
export class SpaceLeases {
  readonly #byPool: ReadonlyMap<string, readonly LeaseRecord[]>;
  /** In ascending order, each once. */
  readonly #values: Readonly<Record<Family, readonly bigint[]>>;

  constructor(leases: readonly LeaseRecord[]) {
    this.#byPool = groupBy(leases, ({ pool }) => pool);
    const values = { 4: new Set<bigint>(), 6: new Set<bigint>() };
    for (const { address } of leases) values[address.family].add(address.value);
    const sorted = (each: Set<bigint>) => [...each].sort((a, b) => (a < b ? -1 : 1));
    this.#values = { 4: sorted(values[4]), 6: sorted(values[6]) };
  }

  ofPool(name: string): readonly LeaseRecord[] {
    return this.#byPool.get(name) ?? [];
  }

  /** Counts the leased addresses in a range, of whichever pool. O(log n) in the leases. */
  countIn({ first, last }: Range, family: Family): bigint {
    const values = this.#values[family];
    return BigInt(lastIndexWhere(values, (each) => each <= last) - lastIndexWhere(values, (each) => each < first));
  }
}
