import { expect } from 'chai';
import { BlockRelease, ReleaseReason } from '../../../api/address-block.js';
import { parseAddress } from '../../../addressing/address/address.js';
import type { BlockRecord } from '../../../addressing/block/block.js';
import { type BlockOptions, blockRecord } from '../../../test/objects/block-objects.js';
import { LentBlocks } from './lent-blocks.js';

const ONE = '10.0.0.0/26';
const TWO = '10.0.0.64/26';
const INTERVAL_MS = 15_000;
const MARKED = { release: BlockRelease.Marked, reason: ReleaseReason.Excess };
const PRESSED = { release: BlockRelease.Marked, reason: ReleaseReason.Pressure };

describe('the blocks lent to a node', () => {
  let lent: LentBlocks;
  let version = 0;

  beforeEach(() => {
    lent = new LentBlocks(INTERVAL_MS);
    lent.setLeasesKnown();
    version = 0;
  });

  /** Delivers a block by the watch. */
  function show(cidr: string, status: BlockOptions = {}): BlockRecord {
    const object = blockRecord(cidr, ++version, status);
    lent.observe({ type: 'changed', object });
    return object;
  }
  const hold = (by: string, address: string, pool = 'blue') =>
    lent.addUse(by, { pool, address: parseAddress(address) });
  const due = (now: number) => lent.answersDue(now).map(({ metadata }) => metadata.name);
  const isUsable = (address: string) => lent.usable('blue', 4).has(parseAddress(address).value);
  const isWithheld = (address: string) => lent.withheld('blue', 4).has(parseAddress(address).value);
  /** A short form of the write. */
  const answer = (block: BlockRecord, now = 0) => {
    const write = lent.answer(block, now);
    return write?.verb === 'patch-status' ? (write.body as { status: object }).status : write;
  };
  const READY = { release: 'ready-for-release' };
  const REFUSED = { release: 'do-not-release' };

  const words: { release?: string; usable: boolean }[] = [
    { usable: true },
    { release: BlockRelease.Refused, usable: true },
    { release: BlockRelease.Marked, usable: false },
    { release: BlockRelease.Ready, usable: false },
    { release: BlockRelease.Released, usable: false },
    { release: 'asked-politely', usable: false },
  ];
  for (const { release, usable } of words) {
    it(`are ${usable ? '' : 'not '}picked from where they say ${release ?? 'nothing'}`, () => {
      show(ONE, release === undefined ? {} : { release });
      expect([isUsable('10.0.0.1'), isWithheld('10.0.0.1')]).to.deep.equal([usable, !usable]);
      expect([isUsable('10.0.0.64'), isWithheld('10.0.0.64')]).to.deep.equal([false, false]);
    });
  }

  it('are not usable while they are being deleted, or after that', () => {
    const block = blockRecord(ONE, 1);
    const deletionTimestamp = '2026-01-01T00:00:00Z';
    lent.observe({ type: 'added', object: { ...block, metadata: { ...block.metadata, deletionTimestamp } } });
    expect([isUsable('10.0.0.1'), isWithheld('10.0.0.1')]).to.deep.equal([false, true]);
    show(TWO);
    lent.observe({ type: 'removed', object: block });
    expect([isUsable('10.0.0.1'), isWithheld('10.0.0.1'), isUsable('10.0.0.64')]).to.deep.equal([false, false, true]);
  });

  it('are not usable where a released block overlaps them', () => {
    show('10.0.0.0/25');
    show(ONE, MARKED);
    expect([isUsable('10.0.0.1'), isUsable('10.0.0.64')]).to.deep.equal([false, true]);
  });

  it('are separated by pool and family', () => {
    show(ONE, { pool: 'red' });
    show('fd00::/122');
    expect(lent.usable('blue', 4).isEmpty).to.equal(true);
    expect(lent.usable('red', 4).size).to.equal(64n);
    expect(lent.usable('blue', 6).size).to.equal(64n);
  });

  it('get another revision when their state changes', () => {
    const before = lent.revisionOf('blue');
    show(ONE, MARKED);
    const then = lent.revisionOf('blue');
    lent.observe({ type: 'removed', object: blockRecord(ONE, 1) });
    expect(new Set([before, then, lent.revisionOf('blue')]).size).to.equal(3);
  });

  it('are released if unused, and kept if a lease is held or a write is under way', () => {
    expect(answer(show(ONE, MARKED))).to.deep.equal(READY);
    hold('lease', '10.0.0.63');
    expect(answer(show(ONE, MARKED))).to.deep.equal(REFUSED);
    expect(answer(show(TWO, MARKED))).to.deep.equal(READY);
    hold('write', '10.0.0.64');
    expect(answer(show(TWO, MARKED))).to.deep.equal(REFUSED);
    lent.removeUse('lease');
    expect(answer(show(ONE, MARKED))).to.deep.equal(READY);
  });

  it('are kept until the last of several uses ends', () => {
    hold('lease', '10.0.0.1');
    hold('write', '10.0.0.1');
    lent.removeUse('lease');
    expect(answer(show(ONE, MARKED))).to.deep.equal(REFUSED);
  });

  it('are not kept by leases of another pool', () => {
    hold('lease', '10.0.0.1', 'red');
    expect(answer(show(ONE, MARKED))).to.deep.equal(READY);
  });

  it('are answered by their uses at the time of the answer, not of the request', () => {
    const block = show(ONE, MARKED);
    expect(due(0)).to.have.length(1);
    hold('write', '10.0.0.1');
    expect(answer(block)).to.deep.equal(REFUSED);
  });

  it('are answered by a compare-and-swap on the version that the watch showed', () => {
    expect(lent.answer(show(ONE, MARKED), 0)).to.deep.equal({
      verb: 'patch-status',
      name: 'blue.10-0-0-0-26',
      body: { metadata: { uid: 'u1', resourceVersion: '1' }, status: READY },
    });
  });

  it('count as used and are not answered until the leases of the node are known', () => {
    lent = new LentBlocks(INTERVAL_MS);
    const block = show(ONE, PRESSED);
    const state = () => [lent.isInUse(block), due(0), lent.nextAnswerAt()];
    expect([...state(), answer(block)]).to.deep.equal([true, [], undefined, undefined]);
    lent.setLeasesKnown();
    expect(state()).to.deep.equal([false, [block.metadata.name], 0]);
  });

  it('are not answered unless they are marked for release', () => {
    for (const { release } of words.filter((word) => word.release !== BlockRelease.Marked)) {
      const block = show(ONE, release === undefined ? {} : { release });
      expect([due(0), lent.nextAnswerAt(), answer(block)]).to.deep.equal([[], undefined, undefined]);
    }
  });

  it('are answered once while an answer is under way, and never for an old version', () => {
    const first = show(ONE, MARKED);
    const second = show(ONE, MARKED);
    expect(answer(first)).to.equal(undefined);
    expect(answer(second)).to.deep.equal(READY);
    expect([answer(second), due(99_000), lent.nextAnswerAt()]).to.deep.equal([undefined, [], undefined]);
  });

  it('are answered in rounds with an interval, all waiting ones in one round', () => {
    const one = show(ONE, MARKED);
    answer(one, 1_000);
    lent.answered(one, 'done', 1_100);
    show(ONE, { release: BlockRelease.Ready });
    const two = show(TWO, MARKED);
    const three = show('10.0.0.128/26', MARKED);
    expect([due(15_999), lent.nextAnswerAt()]).to.deep.equal([[], 16_000]);
    expect(due(16_000)).to.have.length(2);
    answer(three, 16_500);
    answer(two, 16_900);
    show('10.0.0.192/26', MARKED);
    expect([due(31_499), lent.nextAnswerAt()]).to.deep.equal([[], 31_500]);
  });

  for (const reason of [ReleaseReason.Pressure, ReleaseReason.NodeGone, ReleaseReason.Withdrawn, 'Other', undefined]) {
    it(`are answered for at once where the reason is ${reason ?? 'not told'}, and that begins no round`, () => {
      answer(show(ONE, MARKED), 0);
      const status = { release: BlockRelease.Marked, ...(reason !== undefined && { reason }) };
      const two = show(TWO, status);
      expect([due(1), lent.nextAnswerAt()]).to.deep.equal([[two.metadata.name], 0]);
      answer(two, 20_000);
      show('10.0.0.128/26', MARKED);
      expect(lent.nextAnswerAt()).to.equal(INTERVAL_MS);
    });
  }

  it('are answered again with back-off if there was no reply, and are not used meanwhile', () => {
    const block = show(ONE, PRESSED);
    const waits = [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000];
    let now = 0;
    for (const wait of waits) {
      expect(answer(block, now)).to.deep.equal(READY);
      lent.answered(block, 'unknown', now);
      expect([isUsable('10.0.0.1'), lent.nextAnswerAt()]).to.deep.equal([false, now + wait]);
      now += wait;
    }
  });

  it('are decided again after an answer without a reply', () => {
    const block = show(ONE, PRESSED);
    answer(block, 0);
    lent.answered(block, 'unknown', 0);
    hold('lease', '10.0.0.1');
    expect(answer(block, 1_000)).to.deep.equal(REFUSED);
  });

  it('are not usable after any answer until the watch shows the result', () => {
    for (const outcome of ['done', 'lost', 'unknown'] as const) {
      hold('lease', '10.0.0.1');
      const block = show(ONE, PRESSED);
      expect(answer(block)).to.deep.equal(REFUSED);
      lent.answered(block, outcome, 0);
      expect(isUsable('10.0.0.1')).to.equal(false);
      show(ONE, { release: BlockRelease.Refused, reason: ReleaseReason.Pressure });
      expect(isUsable('10.0.0.1')).to.equal(true);
    }
  });

  it('are left to the watch after an answer, and answered again if it shows nothing', () => {
    for (const outcome of ['done', 'lost'] as const) {
      for (const status of [PRESSED, MARKED]) {
        const block = show(ONE, status);
        answer(block, 0);
        lent.answered(block, outcome, 100);
        expect([due(60_099), due(60_100).length]).to.deep.equal([[], 1]);
      }
    }
  });

  it('are answered for a new request even if an answer to the previous one is delayed', () => {
    const first = show(ONE, PRESSED);
    answer(first, 0);
    const second = show(ONE, PRESSED);
    expect(due(0)).to.have.length(1);
    lent.answered(first, 'done', 0);
    expect(due(0)).to.have.length(1);
    answer(second, 0);
    lent.answered(first, 'done', 0);
    expect(answer(second, 0)).to.equal(undefined);
  });
});
