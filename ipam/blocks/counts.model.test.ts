import { expect } from 'chai';
import fc from 'fast-check';
import type { AddressLease } from '../../api/address-lease.js';
import { compiledPool } from '../../test/objects/lease-objects.js';
import { type Address, parseAddress } from '../../addressing/address/address.js';
import { type BlockRecord, lendBlock, readBlock } from '../../addressing/block/block.js';
import { type Cidr, formatCidr, parseCidr, rangeOf, rangesOf } from '../../addressing/address/cidr.js';
import { type LeaseRecord, createLease, stateOf } from '../../addressing/lease/lease.js';
import { type Pool, addressesOf } from '../../addressing/pool/pool.js';
import { Slices } from '../../addressing/block/slices.js';
import { LeaseBook } from '../leases/lease-book.js';
import { NodeLeaseCounts } from './node-demand.js';
import { PoolSlices } from './slice-occupancy.js';

const BASE = parseAddress('10.0.0.0').value;
const SIZE = 32;
const NODES = ['n1', 'n2'] as const;
/** Pools of one address space, which overlap, as they are edited. */
const SHAPES: readonly Pool[] = [
  compiledPool({ cidr: '10.0.0.0/27', blockSize: { ipv4: 29 } }),
  compiledPool({ cidr: '10.0.0.0/27', blockSize: { ipv4: 30 } }),
  compiledPool({ subnets: [{ cidr: '10.0.0.0/28', exclude: ['10.0.0.8/30'] }], blockSize: { ipv4: 30 } }),
];
/** One subnet is smaller than a slice. */
const UNEVEN = compiledPool({ subnets: [{ cidr: '10.0.0.2/32' }, { cidr: '10.0.0.16/28' }], blockSize: { ipv4: 30 } });
const OTHER = compiledPool({ cidr: '10.0.0.16/28', blockSize: { ipv4: 29 } }, 'other');
const BLOCKS: readonly BlockRecord[] = ['10.0.0.8/29', '10.0.0.16/28', '10.0.0.20/30'].map((cidr, index) =>
  blockOf(parseCidr(cidr), NODES[index % 2] ?? '', index),
);

function blockOf(cidr: Cidr, node: string, index: number): BlockRecord {
  const write = lendBlock('blue', cidr, node);
  return readBlock({ ...write.object, metadata: { ...write.object.metadata, uid: `u${index}`, resourceVersion: '1' } });
}

type OwnerKind = 'Pod' | 'IPAMClaim';

type Step =
  | { readonly kind: 'take'; readonly at: number; readonly node: number; readonly pool: string; readonly of: OwnerKind }
  | {
      readonly kind: 'release' | 'delete' | 'markPending' | 'clearPending' | 'addRestoreHold' | 'removeRestoreHold';
      readonly at: number;
    }
  | { readonly kind: 'edit'; readonly shape: number };

/** Often among the first ones, so that slices fill up. */
const offset = fc.oneof(fc.nat(SIZE - 1), fc.nat(7));
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('take' as const),
      at: offset,
      node: fc.nat(2),
      pool: fc.constantFrom('blue', 'other'),
      of: fc.constantFrom<OwnerKind>('Pod', 'Pod', 'IPAMClaim'),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constantFrom('release', 'delete', 'markPending', 'clearPending', 'addRestoreHold', 'removeRestoreHold'),
      at: offset,
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('edit' as const), shape: fc.nat(3) }) },
);

describe('the incremental counts of slices and leases', () => {
  it('always equal a full count of all leases', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 80, size: 'max' }), fc.boolean(), (steps, isLate) =>
        new Counting(isLate).run(steps),
      ),
      { numRuns: 300 },
    );
  });
});

class Counting {
  readonly #book = new LeaseBook();
  readonly #use: NodeLeaseCounts;
  readonly #slices = new PoolSlices(this.#book);
  readonly #isLate: boolean;
  readonly #doubly = { pending: new Set<number>(), restoreHold: new Set<number>() };
  #pool: Pool = SHAPES[0] ?? OTHER;
  #version = 0;

  /** @param isLate whether slices are counted only in the end */
  constructor(isLate: boolean) {
    this.#book.setPool(OTHER);
    this.#use = new NodeLeaseCounts(this.#book);
    this.#isLate = isLate;
  }

  run(steps: readonly Step[]): void {
    for (const each of steps) {
      this.#perform(each);
      if (!this.#isLate) this.#check();
    }
    this.#check();
    const late = new NodeLeaseCounts(this.#book);
    for (const node of NODES) {
      expect(late.leasesOf('blue', node)).to.deep.equal(this.#use.leasesOf('blue', node));
    }
  }

  #perform(each: Step): void {
    if (each.kind === 'edit') {
      this.#pool = SHAPES[each.shape] ?? UNEVEN;
      return;
    }
    const address: Address = { family: 4, value: BASE + BigInt(each.at) };
    const known = this.#leases().find((lease) => lease.address.value === address.value);
    switch (each.kind) {
      case 'take':
        this.#take(each, address, known);
        return;
      case 'release':
        if (known !== undefined) this.#book.recordWrite(this.#objectOf(known, { releasedAt: '2026-01-01T00:00:00Z' }));
        return;
      case 'delete':
        if (known !== undefined) this.#book.forget(known.metadata.name, known.metadata.uid);
        return;
      default:
        this.#change(each.kind, each.at, address);
    }
  }

  #change(
    kind: 'markPending' | 'clearPending' | 'addRestoreHold' | 'removeRestoreHold',
    at: number,
    address: Address,
  ): void {
    this.#book[kind]('blue', address);
    const set = this.#doubly[kind.endsWith('Pending') ? 'pending' : 'restoreHold'];
    if (kind.startsWith('clear') || kind.startsWith('remove')) set.delete(at);
    else set.add(at);
  }

  #take({ node, pool, of }: Extract<Step, { kind: 'take' }>, address: Address, known: LeaseRecord | undefined): void {
    const owner = { kind: of, namespace: 'a', name: 'p', uid: 'p' };
    const name = NODES[node];
    const request = { address, addressSpace: 'blue', pool, owner, ...(name !== undefined && { node: name }) };
    const write = createLease(request);
    const version = String(++this.#version);
    const uid = known?.metadata.uid ?? `l${version}`;
    if (known !== undefined && known.pool !== pool) return;
    this.#book.recordWrite({ ...write.object, metadata: { ...write.object.metadata, uid, resourceVersion: version } });
  }

  #objectOf(record: LeaseRecord, more: Partial<AddressLease['spec']>): AddressLease {
    const { address, addressSpace, pool, owner, node } = record;
    const write = createLease({ address, addressSpace, pool, owner: owner!, ...(node !== undefined && { node }) });
    const metadata = { ...write.object.metadata, uid: record.metadata.uid, resourceVersion: String(++this.#version) };
    return { ...write.object, metadata, spec: { ...write.object.spec, ...more } };
  }

  #leases(): LeaseRecord[] {
    return [...this.#book.all()];
  }

  #check(): void {
    const held = this.#leases().filter((lease) => lease.owner?.kind === 'Pod' && stateOf(lease) === 'held');
    const ofBlue = held.filter(({ pool }) => pool === 'blue');
    for (const node of NODES) {
      const own = ofBlue.filter((lease) => lease.node === node);
      expect(this.#use.leasesOf('blue', node)).to.deep.equal({ 4: own.length, 6: 0 });
      expect([...this.#use.nodesOf('blue')].includes(node)).to.equal(own.length > 0);
      const pools = new Set(held.filter((lease) => lease.node === node).map(({ pool }) => pool));
      expect(this.#use.poolsOf(node)).to.have.members([...pools]);
    }
    for (const block of BLOCKS) {
      const within = ofBlue.filter(({ node, address }) => node === block.node && isIn(block.cidr, address.value));
      expect(this.#use.usedIn(block)).to.equal(within.length);
    }
    this.#checkSlices();
  }

  #checkSlices(): void {
    const taken = new Set([
      ...this.#leases().map(({ address }) => address.value),
      ...[...this.#doubly.pending, ...this.#doubly.restoreHold].map((at) => BASE + BigInt(at)),
    ]);
    const open = addressesOf(this.#pool, 4, 'open');
    const free = (cidr: Cidr) => valuesOf(cidr).filter((value) => open.has(value) && !taken.has(value)).length;
    const use = this.#slices.of(this.#pool);
    const all = [...new Slices(this.#pool, 4).all()];
    for (const cidr of [...all, ...BLOCKS.map((block) => block.cidr)]) {
      expect(use.freeIn(cidr), formatCidr(cidr)).to.equal(free(cidr));
    }
    expect(use.full).to.equal(all.filter((slice) => free(slice) === 0).length);
    expect(use.total).to.equal(BigInt(all.length));
    const lent = rangesOf(
      BLOCKS.slice(0, 1).map(({ cidr }) => cidr),
      4,
    );
    const unlent = [...use.unlent(4, lent)];
    const expected = all.filter((slice) => free(slice) > 0 && !lent.overlaps(rangeOf(slice)));
    expect(unlent.map(({ cidr }) => formatCidr(cidr))).to.have.members(expected.map(formatCidr));
    for (const [index, slice] of unlent.entries()) {
      expect(slice.free).to.equal(free(slice.cidr));
      expect(slice.free).to.be.at.most(unlent[index - 1]?.free ?? Number.POSITIVE_INFINITY);
    }
  }
}

function valuesOf(cidr: Cidr): bigint[] {
  const { first, last } = rangeOf(cidr);
  return Array.from({ length: Number(last - first) + 1 }, (_, index) => first + BigInt(index));
}

function isIn(cidr: Cidr, value: bigint): boolean {
  const { first, last } = rangeOf(cidr);
  return value >= first && value <= last;
}
