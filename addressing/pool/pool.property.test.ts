import { expect } from 'chai';
import fc from 'fast-check';
import type { PoolSubnet } from '../../api/address-pool.js';
import { type Family, BITS, formatAddress, parseAddress } from '../address/address.js';
import { addressesOf, compilePool } from './pool.js';

/** The first address of all subnets that are made here, and how many bits of it vary. */
const BASES: Readonly<Record<Family, bigint>> = {
  4: parseAddress('10.0.0.64').value,
  6: parseAddress('2001:db8::40').value,
};
const MAX_HOST_BITS = 4;

/** A span of offsets from the subnet's first address. */
interface Span {
  readonly from: number;
  readonly to: number;
}

interface Given {
  readonly family: Family;
  readonly hostBits: number;
  /** None: all of the subnet. */
  readonly ranges: readonly Span[];
  readonly exclude: readonly Span[];
  readonly reserved: readonly Span[];
  readonly gateway: number | undefined;
}

const given: fc.Arbitrary<Given> = fc
  .record({ family: fc.constantFrom<Family>(4, 6), hostBits: fc.integer({ min: 0, max: MAX_HOST_BITS }) })
  .chain(({ family, hostBits }) => {
    const offset = fc.nat(2 ** hostBits - 1);
    const span = fc.tuple(offset, offset).map(([a, b]): Span => ({ from: Math.min(a, b), to: Math.max(a, b) }));
    const spans = fc.array(span, { maxLength: 3 });
    return fc.record({
      family: fc.constant(family),
      hostBits: fc.constant(hostBits),
      ranges: spans,
      exclude: spans,
      reserved: spans,
      gateway: fc.option(offset, { nil: undefined }),
    });
  });

function offsets(spans: readonly Span[]): number[] {
  return spans.flatMap(({ from, to }) => Array.from({ length: to - from + 1 }, (_, i) => from + i));
}

/** What the rules say, address by address. */
function naive({
  family,
  hostBits,
  ranges,
  exclude,
  reserved,
  gateway,
}: Given): Record<'open' | 'requestable', number[]> {
  const all = Array.from({ length: 2 ** hostBits }, (_, i) => i);
  const own = hostBits < 2 ? [] : family === 4 ? [0, all.length - 1] : [0];
  const never = new Set([...own, ...offsets(exclude), ...(gateway === undefined ? [] : [gateway])]);
  const within = new Set(ranges.length === 0 ? all : offsets(ranges));
  const asked = new Set(offsets(reserved));
  return {
    open: all.filter((offset) => within.has(offset) && !asked.has(offset) && !never.has(offset)),
    requestable: all.filter((offset) => (within.has(offset) || asked.has(offset)) && !never.has(offset)),
  };
}

function isRefused({ family, hostBits, ranges, gateway }: Given): boolean {
  const overlap = new Set(offsets(ranges)).size < offsets(ranges).length;
  const own = family === 4 && hostBits >= 2 && gateway !== undefined && [0, 2 ** hostBits - 1].includes(gateway);
  return overlap || own;
}

function write({ family, hostBits, gateway, ...lists }: Given): PoolSubnet {
  const address = (offset: number): string => formatAddress({ family, value: BASES[family] + BigInt(offset) });
  const texts = (spans: readonly Span[]): string[] =>
    spans.map(({ from, to }) => (from === to ? address(from) : `${address(from)}-${address(to)}`));
  return {
    cidr: `${address(0)}/${BITS[family] - hostBits}`,
    ...(lists.ranges.length > 0 && { ranges: texts(lists.ranges) }),
    exclude: texts(lists.exclude),
    reserved: texts(lists.reserved),
    ...(gateway !== undefined && { gateway: address(gateway) }),
  };
}

describe('compilePool of any small subnet', () => {
  it('decides about each address, and about invalid specs, like a naive implementation of the rules', () => {
    fc.assert(
      fc.property(given, (subnet) => {
        const spec = { network: 'blue', subnets: [write(subnet)] };
        const result = compilePool({ metadata: { name: 'blue', uid: 'u1' }, spec });
        expect(result.ok, JSON.stringify(result.ok ? spec : result.problems)).to.equal(!isRefused(subnet));
        if (!result.ok) return;
        const wanted = naive(subnet);
        for (const which of ['open', 'requestable'] as const) {
          const set = addressesOf(result.pool, subnet.family, which);
          const base = BASES[subnet.family];
          const found = Array.from({ length: 2 ** MAX_HOST_BITS }, (_, i) => i).filter((i) =>
            set.has(base + BigInt(i)),
          );
          expect(found, which).to.deep.equal(wanted[which]);
          expect(set.size, which).to.equal(BigInt(found.length));
        }
      }),
      { numRuns: 1000 },
    );
  });
});
