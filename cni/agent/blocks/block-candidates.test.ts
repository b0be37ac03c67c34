import { expect } from 'chai';
import { BlockRelease } from '../../../api/address-block.js';
import { formatAddress, parseAddress } from '../../../addressing/address/address.js';
import { heapBytes } from '../../../test/heap.js';
import { type BlockOptions, blockRecord } from '../../../test/objects/block-objects.js';
import { compiledPool } from '../../../test/objects/lease-objects.js';
import { BlockCandidates, BLOCK_TAKEN_TTL_MS } from './block-candidates.js';
import { LentBlocks } from './lent-blocks.js';

/** The open addresses are 10.0.0.2 to 10.0.0.30. Blocks have four addresses. */
const POOL = compiledPool({ subnets: [{ cidr: '10.0.0.0/27', gateway: '10.0.0.1' }, { cidr: 'fd00::/64' }] });
const MARKED = { release: BlockRelease.Marked };

describe('candidates from the blocks of a node', () => {
  let lent: LentBlocks;
  let candidates: BlockCandidates;
  let version: number;
  let [draws, time] = [0, 0];
  const source = { clock: { now: () => time }, random: () => (draws++ * 0.618_033_988_75) % 1 };

  beforeEach(() => {
    lent = new LentBlocks(15_000);
    lent.setLeasesKnown();
    candidates = new BlockCandidates(lent, source);
    version = 0;
  });

  const show = (cidr: string, given: BlockOptions = {}) => {
    const object = blockRecord(cidr, ++version, given);
    lent.observe({ type: 'changed', object });
    return object;
  };
  const pick = (now = 0, pool = POOL, family: 4 | 6 = 4) => {
    time = now;
    const address = candidates.pick(pool, family);
    return address && formatAddress(address);
  };
  const settle = (address: string | undefined, isTaken: boolean, now = 0) => {
    time = now;
    candidates.settle(POOL, parseAddress(address ?? ''), isTaken ? 'lost' : 'failed');
  };
  /** All addresses that can be picked, sorted. */
  const all = (now = 0, pool = POOL): string[] => {
    const found: string[] = [];
    for (let next = pick(now, pool); next !== undefined; next = pick(now, pool)) found.push(next);
    for (const address of found) settle(address, false, now);
    return found.sort();
  };
  const SECOND = ['10.0.0.4', '10.0.0.5', '10.0.0.6', '10.0.0.7'];

  it('are the open addresses of usable blocks', () => {
    expect(all()).to.deep.equal([]);
    show('10.0.0.0/30');
    expect(all()).to.deep.equal(['10.0.0.2', '10.0.0.3']);
    show('10.0.0.4/30');
    show('10.0.0.8/30', MARKED);
    expect(all()).to.deep.equal(['10.0.0.2', '10.0.0.3', ...SECOND]);
    show('fd00::40/122');
    expect(pick(0, POOL, 6)).to.match(/^fd00::[4-7]/);
  });

  it('exclude a block as soon as the event that marks it arrives', () => {
    show('10.0.0.4/30');
    expect(all()).to.deep.equal(SECOND);
    show('10.0.0.4/30', MARKED);
    expect(pick()).to.equal(undefined);
    show('10.0.0.4/30', { release: BlockRelease.Refused });
    expect(all()).to.deep.equal(SECOND);
    lent.observe({ type: 'removed', object: blockRecord('10.0.0.4/30', 9) });
    expect(pick()).to.equal(undefined);
  });

  it('exclude addresses that were removed from the pool', () => {
    show('10.0.0.4/30');
    expect(all()).to.deep.equal(SECOND);
    expect(all(0, compiledPool({ subnets: [{ cidr: '10.0.0.0/27', exclude: ['10.0.0.4/31'] }] }))).to.deep.equal([
      '10.0.0.6',
      '10.0.0.7',
    ]);
    const moved = compiledPool({ addressSpace: 'other', subnets: [{ cidr: '10.0.0.0/27' }] });
    expect(all(0, moved)).to.deep.equal(SECOND);
  });

  it('exclude addresses that are leased on this node, being tried, or found taken', () => {
    show('10.0.0.4/30');
    candidates.addLease('blue', parseAddress('10.0.0.4'));
    candidates.addLease('red', parseAddress('10.0.0.5'));
    expect(candidates.try(POOL, parseAddress('10.0.0.6'))).to.equal(true);
    expect(candidates.try(POOL, parseAddress('10.0.0.6'))).to.equal(false);
    expect(candidates.isKnown(POOL, parseAddress('10.0.0.6'))).to.equal(true);
    expect(candidates.isKnown(POOL, parseAddress('10.0.0.7'))).to.equal(false);
    expect(all()).to.deep.equal(['10.0.0.5', '10.0.0.7']);
    settle('10.0.0.6', true);
    expect(all()).to.deep.equal(['10.0.0.5', '10.0.0.7']);
    candidates.removeLease('blue', parseAddress('10.0.0.4'));
    expect(all()).to.deep.equal(['10.0.0.4', '10.0.0.5', '10.0.0.7']);
  });

  it('include addresses found taken after minutes, or after a lease of this node came and went', () => {
    show('10.0.0.4/30');
    const [one, two] = [pick(), pick()];
    settle(one, true, 0);
    settle(two, true, 1_000);
    expect(all(BLOCK_TAKEN_TTL_MS - 1)).to.have.length(2);
    expect(all(BLOCK_TAKEN_TTL_MS)).to.include(one).and.to.have.length(3);
    candidates.addLease('blue', parseAddress(two!));
    candidates.removeLease('blue', parseAddress(two!));
    expect(all(BLOCK_TAKEN_TTL_MS)).to.deep.equal(SECOND);
  });

  it('exclude an address until its attempt has ended and its lease is gone', () => {
    show('10.0.0.4/30');
    const picked = pick();
    candidates.addLease('blue', parseAddress(picked!));
    candidates.removeLease('blue', parseAddress(picked!));
    expect(all()).to.have.length(3);
    candidates.addLease('blue', parseAddress(picked!));
    settle(picked, false);
    expect(all()).to.have.length(3);
  });

  it('count as a use of their block while they are tried', () => {
    show('10.0.0.4/30');
    const picked = pick();
    const block = show('10.0.0.4/30', MARKED);
    expect(lent.isInUse(block)).to.equal(true);
    settle(picked, false);
    expect(lent.isInUse(block)).to.equal(false);
  });

  it('are picked at random', () => {
    show('10.0.0.4/30');
    const first = new Set<string | undefined>();
    for (let n = 0; n < 20; n++) {
      const address = new BlockCandidates(lent, source).pick(POOL, 4);
      first.add(address && formatAddress(address));
    }
    expect(first.size).to.equal(4);
  });

  it('report whether an address lies in a usable block', () => {
    show('10.0.0.4/30');
    show('10.0.0.8/30', MARKED);
    const usable = ['10.0.0.3', '10.0.0.4', '10.0.0.7', '10.0.0.8', '10.1.0.1'].filter((text) =>
      candidates.isUsable(POOL, parseAddress(text)),
    );
    expect(usable).to.deep.equal(['10.0.0.4', '10.0.0.7']);
  });

  it('exclude blocks that are marked or released from picks anywhere in the pool', () => {
    expect(candidates.withoutWithheld(POOL)).to.equal(POOL);
    show('10.0.0.4/30');
    expect(candidates.withoutWithheld(POOL)).to.equal(POOL);
    show('10.0.0.8/30', MARKED);
    const elsewhere = candidates.withoutWithheld(POOL);
    const open = [3, 4, 7, 8, 11, 12].filter((last) => elsewhere.subnets[0]!.open.has(0x0a000000n + BigInt(last)));
    expect(open).to.deep.equal([3, 4, 7, 12]);
    expect(elsewhere.subnets[0]!.requestable).to.equal(POOL.subnets[0]!.requestable);
    expect(candidates.withoutWithheld(POOL)).to.equal(elsewhere);
    show('10.0.0.8/30');
    expect(candidates.withoutWithheld(POOL)).to.equal(POOL);
  });

  it('free the memory of deleted pools, and still serve a pool that was used long ago', function () {
    this.timeout(10_000);
    show('10.0.0.4/30');
    expect(all()).to.deep.equal(SECOND);
    const ranges = Array.from({ length: 64 }, (_, index) => `10.0.0.${index * 2 + 1}`);
    const goThrough = (from: number) => {
      for (let index = from; index < from + 400; index++) {
        const pool = compiledPool({ subnets: [{ cidr: '10.0.0.0/24', ranges }] });
        candidates.withoutWithheld({ ...pool, name: `p${index}` });
      }
      return heapBytes();
    };
    const before = goThrough(0);
    expect(goThrough(400) - before).to.be.below(1_500_000);
    expect(all()).to.deep.equal(SECOND);
  });
});
