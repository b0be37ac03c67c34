import { expect } from 'chai';
import fc from 'fast-check';
import { compiledPool } from '../../test/objects/lease-objects.js';
import { AddressSpace } from './address-space.js';
import { type Address, type Family, formatAddress, parseAddress } from '../address/address.js';
import { type Pool, addressesOf } from '../pool/pool.js';

const POOL = compiledPool({ subnets: [{ cidr: '10.0.0.0/29' }] }); // .1 to .6

function spaceOf(...pools: Pool[]): AddressSpace {
  const space = new AddressSpace();
  for (const pool of pools) space.setPool(pool);
  return space;
}

/** Occupies the next one. */
function take(space: AddressSpace, pool = 'blue', family: Family = 4): string | undefined {
  const address = space.next(pool, family);
  if (address === undefined) return undefined;
  space.occupy(address);
  return formatAddress(address);
}

function takeAll(space: AddressSpace, pool = 'blue', family: Family = 4): string[] {
  const taken: string[] = [];
  for (let next = take(space, pool, family); next !== undefined; next = take(space, pool, family)) taken.push(next);
  return taken;
}

const at = (last: number) => `10.0.0.${last}`;

describe('AddressSpace', () => {
  it('returns each address of a pool once, in order, and then none', () => {
    const space = spaceOf(POOL);
    expect(takeAll(space)).to.deep.equal([1, 2, 3, 4, 5, 6].map(at));
    expect(space.free('blue', 4)).to.equal(0n);
    expect(space.next('blue', 6)).to.equal(undefined);
    expect(space.next('nobody', 4)).to.equal(undefined);
    expect(space.free('nobody', 4)).to.equal(0n);
  });

  it('returns the same address until it is occupied', () => {
    const space = spaceOf(POOL);
    expect(space.next('blue', 4)).to.deep.equal(space.next('blue', 4));
  });

  it('returns vacated addresses after all others, oldest first', () => {
    const space = spaceOf(POOL);
    for (const taken of [1, 2, 3]) expect(take(space)).to.equal(at(taken));
    space.vacate(parseAddress(at(3)));
    space.vacate(parseAddress(at(1)));
    expect(space.free('blue', 4)).to.equal(5n);
    expect(takeAll(space)).to.deep.equal([4, 5, 6, 3, 1].map(at));
  });

  it('continues in turn if it has forgotten which addresses were vacated', () => {
    const space = new AddressSpace(0);
    space.setPool(POOL);
    for (const taken of [1, 2]) expect(take(space)).to.equal(at(taken));
    space.vacate(parseAddress(at(1)));
    expect(takeAll(space)).to.deep.equal([3, 4, 5, 6, 1].map(at));
  });

  it('treats an occupied address as occupied in all pools, and shares the turn among equal pools', () => {
    const other = compiledPool({ subnets: [{ cidr: '10.0.0.0/28', gateway: at(4) }] }, 'other');
    const equal = compiledPool({ subnets: [{ cidr: '10.0.0.0/29' }] }, 'equal');
    const space = spaceOf(POOL, other, equal);
    expect([take(space), take(space, 'other'), take(space, 'equal')]).to.deep.equal([1, 2, 3].map(at));
    expect([space.free('blue', 4), space.free('equal', 4), space.free('other', 4)]).to.deep.equal([3n, 3n, 10n]);
    space.removePool('equal');
    expect(take(space)).to.equal(at(4));
    expect(take(space, 'other')).to.equal(at(5));
  });

  it('skips full ranges and the gaps between ranges', () => {
    const ranges = ['10.0.0.1-10.0.0.2', '10.0.0.5', '10.0.1.0/31'];
    const space = spaceOf(compiledPool({ subnets: [{ cidr: '10.0.0.0/16', ranges, exclude: ['10.0.1.1'] }] }));
    space.occupy(parseAddress(at(5)));
    expect(takeAll(space)).to.deep.equal([at(1), at(2), '10.0.1.0']);
  });

  it('never returns reserved addresses of a pool without a request', () => {
    const space = spaceOf(compiledPool({ subnets: [{ cidr: '10.0.0.0/30', reserved: [at(1)] }] }));
    expect(takeAll(space)).to.deep.equal([at(2)]);
    space.vacate(parseAddress(at(1)));
    expect(space.free('blue', 4)).to.equal(0n);
  });

  it('resumes after the address that was leased last, and wraps around', () => {
    const space = spaceOf(POOL);
    for (const [last, time] of [
      [5, 20],
      [3, 30],
      [6, 10],
      [2, 30],
    ] as const) {
      // oxfmt-ignore
      space.resume('blue', parseAddress(at(last)), time);
      space.occupy(parseAddress(at(last)));
    }
    expect(takeAll(space)).to.deep.equal([4, 1].map(at));
  });

  it('keeps its position and the vacated addresses when the pool changes', () => {
    const narrowed = compiledPool({ subnets: [{ cidr: '10.0.0.0/29', exclude: [at(5)] }] });
    for (const remembered of [0, 1]) {
      const space = new AddressSpace(remembered);
      space.setPool(POOL);
      for (const taken of [1, 2, 3]) expect(take(space)).to.equal(at(taken));
      for (const last of [1, 2]) space.vacate(parseAddress(at(last)));
      space.setPool(narrowed);
      expect(space.free('blue', 4)).to.equal(4n);
      expect(takeAll(space)).to.deep.equal([4, 6, 1, 2].map(at));
    }
  });

  it('serves both families of a pool, including a /64', () => {
    const pool = compiledPool({ subnets: [{ cidr: 'fd00::/64', gateway: 'fd00::1' }, { cidr: '10.0.0.0/31' }] });
    const space = spaceOf(pool);
    expect(takeAll(space)).to.deep.equal([at(0), at(1)]);
    expect([take(space, 'blue', 6), take(space, 'blue', 6)]).to.deep.equal(['fd00::2', 'fd00::3']);
    expect(space.free('blue', 6)).to.equal(2n ** 64n - 4n);
  });

  describe('random', () => {
    it('picks addresses from all over a pool of any size', () => {
      const space = spaceOf(compiledPool({ subnets: [{ cidr: 'fd00::/64' }] }));
      const pick = (random: number) => formatAddress(space.random('blue', 6, () => random)!);
      expect([pick(0), pick(0.5), pick(1 - 2 ** -33)]).to.deep.equal([
        'fd00::1',
        'fd00::8000:0:8000:1',
        'fd00::1', // the draw after the last one of 2^64 - 1
      ]);
    });

    it('picks the next free address if all draws hit occupied ones', () => {
      const space = spaceOf(POOL);
      for (const last of [3, 4, 5]) space.occupy(parseAddress(at(last)));
      expect(space.random('blue', 4, () => 3 / 2 ** 32)).to.deep.equal(parseAddress(at(6)));
    });

    it('picks vacated addresses only if nothing else is left, and not always the same one', () => {
      const space = spaceOf(POOL);
      takeAll(space);
      for (const last of [6, 5, 4, 3]) space.vacate(parseAddress(at(last)));
      const picked = [0, 0.99].map((random) => space.random('blue', 4, () => random));
      expect(picked).to.deep.equal([6, 5].map((last) => parseAddress(at(last))));
    });
  });

  it('behaves like a naive address space for any sequence of changes', () => {
    fc.assert(
      fc.property(fc.array(operation, { maxLength: 100 }), fc.nat({ max: 6 }), (operations, remembered) => {
        const model = new Model(remembered);
        for (const each of operations) {
          model.run(each);
          model.check();
        }
      }),
      { numRuns: 200 },
    );
  });
});

/** Overlapping, disjoint, with gaps, without addresses, and of both families. */
const SHAPES = [
  { subnets: [{ cidr: '10.0.0.0/29' }, { cidr: 'fd00::/125' }] },
  { subnets: [{ cidr: '10.0.0.0/28', exclude: ['10.0.0.4-10.0.0.6'], gateway: '10.0.0.1' }] },
  { subnets: [{ cidr: '10.0.0.0/29', ranges: ['10.0.0.2', '10.0.0.4-10.0.0.5'], reserved: ['10.0.0.4'] }] },
  { subnets: [{ cidr: '10.0.0.8/30' }, { cidr: '10.0.0.4/31' }, { cidr: 'fd00::/126' }] },
  { subnets: [{ cidr: '10.0.0.0/30', reserved: ['10.0.0.0/30'] }] },
].map((spec) => compiledPool(spec));
const NAMES = ['blue', 'red', 'green'];
const ADDRESSES: readonly Address[] = [
  ...Array.from({ length: 16 }, (_, n) => parseAddress(at(n))),
  ...Array.from({ length: 8 }, (_, n) => parseAddress(`fd00::${n}`)),
];

type Operation =
  | { do: 'set'; pool: string; shape: number }
  | { do: 'remove'; pool: string }
  | { do: 'occupy' | 'vacate'; address: Address }
  | { do: 'take'; pool: string; family: Family; random: boolean };

const pool = fc.constantFrom(...NAMES);
const anyFamily = fc.constantFrom<Family>(4, 6);
const operation: fc.Arbitrary<Operation> = fc.oneof(
  { weight: 2, arbitrary: fc.record({ do: fc.constant('set' as const), pool, shape: fc.nat({ max: 4 }) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('remove' as const), pool }) },
  {
    weight: 6,
    arbitrary: fc.record({ do: fc.constantFrom('occupy', 'vacate'), address: fc.constantFrom(...ADDRESSES) }),
  },
  {
    weight: 6,
    arbitrary: fc.record({ do: fc.constant('take' as const), pool, family: anyFamily, random: fc.boolean() }),
  },
);

class Model {
  readonly #space: AddressSpace;
  readonly #remembered: number;
  readonly #pools = new Map<string, Pool>();
  readonly #occupied = new Set<Address>();
  /** Oldest first. */
  readonly #vacated: Record<Family, Address[]> = { 4: [], 6: [] };

  constructor(remembered: number) {
    this.#remembered = remembered;
    this.#space = new AddressSpace(remembered);
  }

  run(operation: Operation): void {
    switch (operation.do) {
      case 'set': {
        const set = { ...SHAPES[operation.shape]!, name: operation.pool };
        this.#pools.set(operation.pool, set);
        this.#space.setPool(set);
        return;
      }
      case 'remove':
        this.#pools.delete(operation.pool);
        this.#space.removePool(operation.pool);
        return;
      case 'occupy':
        this.#occupy(operation.address);
        return;
      case 'vacate':
        this.#vacate(operation.address);
        return;
      case 'take':
        this.#take(operation);
    }
  }

  check(): void {
    for (const address of ADDRESSES) {
      expect(this.#space.isOccupied(address), formatAddress(address)).to.equal(this.#occupied.has(address));
    }
    for (const name of NAMES) {
      for (const family of [4, 6] as const) {
        expect(this.#space.free(name, family), `${name} ${family}`).to.equal(BigInt(this.#free(name, family).length));
      }
    }
  }

  #take({ pool, family, random }: Extract<Operation, { do: 'take' }>): void {
    const found = random ? this.#space.random(pool, family, () => 0.4) : this.#space.next(pool, family);
    const free = this.#free(pool, family);
    const vacated = this.#vacated[family].filter((address) => free.includes(address));
    const unused = free.filter((address) => !vacated.includes(address));
    const possible = unused.length > 0 ? unused : random ? vacated : vacated.slice(0, 1);
    if (found === undefined) {
      expect(possible).to.deep.equal([]);
      return;
    }
    expect(possible).to.deep.include(found);
    this.#occupy(ADDRESSES.find((each) => each.family === family && each.value === found.value)!);
  }

  #free(name: string, family: Family): Address[] {
    const known = this.#pools.get(name);
    if (known === undefined) return [];
    const open = addressesOf(known, family, 'open');
    const all = ADDRESSES.filter((address) => address.family === family && open.has(address.value));
    return all.filter((address) => !this.#occupied.has(address));
  }

  #occupy(address: Address): void {
    this.#space.occupy(address);
    this.#occupied.add(address);
    this.#vacated[address.family] = this.#vacated[address.family].filter((each) => each !== address);
  }

  #vacate(address: Address): void {
    this.#space.vacate(address);
    if (!this.#occupied.delete(address)) return;
    const order = this.#vacated[address.family];
    order.push(address);
    if (order.length > this.#remembered) order.shift();
  }
}
