import { expect } from 'chai';
import fc from 'fast-check';
import { adminPool } from '../../test/objects/pool-objects.js';
import { AddressSpace, type LentAddresses } from './address-space.js';
import { parseAddress } from '../address/address.js';
import { type Pool, addressesOf, compilePool } from '../pool/pool.js';
import { type Range, RangeSet } from '../address/ranges.js';

const BASE = parseAddress('10.0.0.0').value;
const SIZE = 32;

/** What is done, with offsets from the first address of the subnets. */
type Step =
  | { readonly kind: 'occupy' | 'vacate'; readonly at: number }
  | { readonly kind: 'lend'; readonly blocks: readonly number[] }
  | { readonly kind: 'edit'; readonly pool: number }
  | { readonly kind: 'lease' };

const offset = fc.nat(SIZE - 1);
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('occupy' as const), at: offset }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('vacate' as const), at: offset }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('lend' as const), blocks: fc.uniqueArray(fc.nat(7)) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('edit' as const), pool: fc.nat(2) }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('lease' as const) }) },
);

const POOLS: readonly Pool[] = [[], ['10.0.0.8/29'], ['10.0.0.0/28', '10.0.0.20']].map((exclude) => {
  const compiled = compilePool(adminPool('blue', { subnets: [{ cidr: '10.0.0.0/27', exclude }] }));
  if (!compiled.ok) throw new Error('the pool is good');
  return compiled.pool;
});

function poolAt(index: number): Pool {
  const pool = POOLS[index];
  if (pool === undefined) throw new RangeError(`there is no pool ${index}`);
  return pool;
}

/** Blocks of four addresses. */
function lentOf(blocks: readonly number[]): LentAddresses {
  const ranges: Range[] = blocks.map((at) => ({ first: BASE + BigInt(4 * at), last: BASE + BigInt(4 * at + 3) }));
  return { 4: RangeSet.of(ranges), 6: RangeSet.EMPTY };
}

describe('AddressSpace with lent addresses', () => {
  it('returns lent addresses only after all others, and every address in the end', () => {
    fc.assert(fc.property(fc.array(step, { maxLength: 60, size: 'max' }), fc.nat(6), run), { numRuns: 500 });
  });

  it('continues after the last address when blocks are created and deleted', () => {
    const space = new AddressSpace();
    space.setPool(poolAt(0));
    const given = [[], [1], [1, 2], [1, 2], [2]].map((blocks) => {
      space.setLent('blue', lentOf(blocks));
      const address = space.next('blue', 4);
      if (address === undefined) throw new Error('there are addresses');
      space.occupy(address);
      space.vacate(address);
      return Number(address.value - BASE);
    });
    expect(given).to.deep.equal([1, 2, 3, 12, 13]);
  });

  it('reports each change of occupancy once', () => {
    const space = new AddressSpace();
    const told: string[] = [];
    const end = space.onChange(({ value }, isOccupied) => told.push(`${value}${isOccupied ? '+' : '-'}`));
    for (let i = 0; i < 2; i++) space.occupy({ family: 4, value: 7n });
    for (let i = 0; i < 2; i++) space.vacate({ family: 4, value: 7n });
    space.occupy({ family: 6, value: 7n });
    end();
    space.vacate({ family: 6, value: 7n });
    expect(told).to.deep.equal(['7+', '7-', '7+']);
  });
});

/** @param remembered how many vacated addresses are kept back */
function run(steps: readonly Step[], remembered: number): void {
  const space = new AddressSpace(remembered);
  let pool = poolAt(0);
  let lent = lentOf([]);
  const occupied = new Set<bigint>();
  space.setPool(pool);
  for (const each of steps) {
    if (each.kind === 'occupy' || each.kind === 'vacate') change(each.kind, BASE + BigInt(each.at));
    else if (each.kind === 'lend') space.setLent('blue', (lent = lentOf(each.blocks)));
    else if (each.kind === 'edit') space.setPool((pool = poolAt(each.pool)));
    else {
      const address = space.next('blue', 4);
      if (address !== undefined) change('occupy', address.value);
    }
    check();
  }

  function change(kind: 'occupy' | 'vacate', value: bigint): void {
    space[kind]({ family: 4, value });
    if (kind === 'occupy') occupied.add(value);
    else occupied.delete(value);
  }

  function check(): void {
    const all = Array.from({ length: SIZE }, (_, at) => BASE + BigInt(at));
    const free = all.filter((value) => addressesOf(pool, 4, 'open').has(value) && !occupied.has(value));
    const unlent = free.filter((value) => !lent[4].has(value));
    const peeked = space.peek('blue', 4);
    const chosen = space.next('blue', 4);
    expect(chosen).to.deep.equal(peeked);
    const choices = unlent.length > 0 ? unlent : free;
    if (chosen === undefined) expect(choices).to.deep.equal([]);
    else expect(choices).to.include(chosen.value);
    expect(space.isUnlentExhausted('blue', 4)).to.equal(!lent[4].isEmpty && unlent.length === 0);
    expect(space.free('blue', 4)).to.equal(BigInt(free.length));
    const range = { first: BASE + 3n, last: BASE + 20n };
    const within = [...occupied].filter((value) => value >= range.first && value <= range.last);
    expect([...space.occupiedIn(4, range)]).to.have.members(within);
  }
}
