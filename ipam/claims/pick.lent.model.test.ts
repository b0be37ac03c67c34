import { expect } from 'chai';
import fc from 'fast-check';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import { compiledPool, leaseOf } from '../../test/objects/lease-objects.js';
import { type Address, formatAddress, parseAddress } from '../../addressing/address/address.js';
import type { LentAddresses } from '../../addressing/allocator/address-space.js';
import { addressesOf } from '../../addressing/pool/pool.js';
import { RangeSet } from '../../addressing/address/ranges.js';
import { LeaseBook } from '../leases/lease-book.js';
import { pick } from './pick.js';

const CLAIM: IPAMClaim = { metadata: { namespace: 'vms', name: 'c' }, spec: { network: 'blue', interface: '' } };
const OWNER = { kind: 'IPAMClaim' as const, namespace: 'vms', name: 'c', uid: 'c' };
const TERMS = { cooldownMs: 0, stickyMs: 0, now: 0 };
const POOL = compiledPool({ cidr: '10.0.0.0/27' });
const BASE = parseAddress('10.0.0.0').value;
const OPEN = addressesOf(POOL, 4, 'open');
const EMPTY_WAIT_LIST = { countOlder: () => 0 };

type Step =
  | { readonly kind: 'claim' }
  | { readonly kind: 'ask'; readonly at: number }
  | { readonly kind: 'pod' | 'free'; readonly at: number }
  | { readonly kind: 'lend'; readonly blocks: readonly number[] };

const at = fc.nat(31);
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: fc.constant({ kind: 'claim' as const }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('ask' as const), at }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constantFrom('pod' as const, 'free' as const), at }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('lend' as const), blocks: fc.uniqueArray(fc.nat(7)) }) },
);

/** Blocks of four addresses. */
function lentOf(blocks: readonly number[]): LentAddresses {
  const ranges = blocks.map((n) => ({ first: BASE + BigInt(4 * n), last: BASE + BigInt(4 * n + 3) }));
  return { 4: RangeSet.of(ranges), 6: RangeSet.EMPTY };
}

/** A pool with blocks that nodes have, and claims that need addresses of it. */
class LentPool {
  readonly #book = new LeaseBook();
  readonly #taken = new Map<bigint, string>();
  #lent = lentOf([]);
  #version = 0;

  constructor() {
    this.#book.preferUnlent(() => this.#lent);
  }

  perform(each: Step): void {
    const address: Address = { family: 4, value: BASE + BigInt('at' in each ? each.at : 0) };
    if (each.kind === 'lend') this.#lent = lentOf(each.blocks);
    else if (each.kind === 'free') this.#free(address);
    else if (each.kind === 'pod') this.#take(address);
    else if (each.kind === 'ask') this.#ask(address);
    else this.claim();
  }

  /** @returns false if there is no address */
  claim(): boolean {
    const free = OPEN.ranges
      .flatMap(({ first, last }) => values(first, last))
      .filter((value) => !this.#taken.has(value));
    const unlent = free.filter((value) => !this.#lent[4].has(value));
    let isPressed = false;
    const market = {
      view: this.#book.view(POOL),
      terms: TERMS,
      claims: new Map(),
      waitList: EMPTY_WAIT_LIST,
      noteShortage: () => (isPressed = true),
    };
    const chosen = pick(CLAIM, POOL, { addresses: [], families: [4], owner: OWNER }, market);
    expect(isPressed, 'blocks are wanted back').to.equal(unlent.length === 0 && !this.#lent[4].isEmpty);
    expect(chosen.ok, 'it is full only where nothing is free').to.equal(free.length > 0);
    if (!chosen.ok) return false;
    const [choice] = chosen.candidates;
    if (choice?.kind !== 'create') throw new Error('nothing is released here');
    expect(unlent.length > 0 ? unlent : free).to.include(choice.address.value);
    this.#take(choice.address);
    return true;
  }

  /** A requested address is picked even from a block, and causes no shortage. */
  #ask(address: Address): void {
    const view = this.#book.view(POOL);
    const noteShortage = () => expect.fail('there is no shortage');
    const request = { addresses: [address], families: [], owner: OWNER };
    const chosen = pick(CLAIM, POOL, request, {
      view,
      terms: TERMS,
      claims: new Map(),
      waitList: EMPTY_WAIT_LIST,
      noteShortage,
    });
    expect(chosen.ok).to.equal(OPEN.has(address.value) && !this.#taken.has(address.value));
    if (chosen.ok) this.#take(address);
  }

  #take(address: Address): void {
    if (this.#taken.has(address.value)) return;
    const version = ++this.#version;
    const uid = `l${version}`;
    this.#book.recordWrite(leaseOf(formatAddress(address), version, { uid }));
    this.#taken.set(address.value, uid);
  }

  #free(address: Address): void {
    const uid = this.#taken.get(address.value);
    const lease = [...this.#book.all()].find(({ metadata }) => metadata.uid === uid);
    if (lease === undefined) return;
    this.#book.forget(lease.metadata.name, lease.metadata.uid);
    this.#taken.delete(address.value);
  }
}

function values(first: bigint, last: bigint): bigint[] {
  return Array.from({ length: Number(last - first) + 1 }, (_, index) => first + BigInt(index));
}

describe('picking addresses from a pool of which nodes have blocks', () => {
  it('takes addresses of blocks only if no other is free, and in the end all addresses of the pool', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60, size: 'max' }), (steps) => {
        const lending = new LentPool();
        for (const each of steps) lending.perform(each);
        while (lending.claim());
      }),
      { numRuns: 500 },
    );
  });
});
