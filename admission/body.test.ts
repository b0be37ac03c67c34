import { EventEmitter } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { expect } from 'chai';
import { heapBytes } from '../test/heap.js';
import { BodyBudget, readBody } from './body.js';

const KIB = 1024;
const neverEvicted = () => expect.fail('it was evicted');

describe('a complete request body', () => {
  it('is in memory once while its review waits', async () => {
    const budget = new BodyBudget(8192 * KIB);
    const request = Object.assign(new EventEmitter(), { headers: { 'content-type': 'application/json' } });
    const before = heapBytes();
    const reading = readBody(request as unknown as IncomingMessage, 4096 * KIB, budget);
    for (let count = 0; count < 64; count++) request.emit('data', Buffer.alloc(64 * KIB));
    request.emit('end');
    const body = await reading;
    heapBytes(); // frees buffers, which the next one sees
    expect(heapBytes() - before).to.be.below(6144 * KIB);
    expect(body.bytes.length).to.equal(4096 * KIB);
    expect(request.listenerCount('data')).to.equal(1);
  });
});

describe('the budget of request bodies', () => {
  it('counts more than the bytes of each request, and is empty after all are released', () => {
    const budget = new BodyBudget(100 * KIB);
    const shares = [budget.open(neverEvicted), budget.open(neverEvicted)];
    for (const share of shares) {
      expect(share.add(10 * KIB)).to.equal(true);
      expect(share.add(10 * KIB)).to.equal(true);
    }
    expect(budget.used).to.equal(72 * KIB);
    for (const share of shares) {
      share.complete(20 * KIB);
      share.release();
      share.release();
    }
    expect(budget.used).to.equal(0);
  });

  it('counts a complete body as one piece, and a refused one not at all', () => {
    const budget = new BodyBudget(100 * KIB);
    const [inPieces, refused] = [budget.open(neverEvicted), budget.open(neverEvicted)];
    inPieces.add(40 * KIB);
    refused.add(10 * KIB);
    refused.release();
    inPieces.complete(KIB);
    refused.complete(KIB);
    expect(budget.used).to.equal(17 * KIB);
    inPieces.release();
    expect(budget.used).to.equal(0);
  });

  it('evicts only as many of the oldest incomplete bodies as necessary, and never a complete one', () => {
    const evicted: string[] = [];
    const budget = new BodyBudget(100 * KIB);
    const open = (name: string) => budget.open(() => evicted.push(name));
    const [complete, oldest, older, young] = [open('complete'), open('oldest'), open('older'), open('young')];
    complete.add(10 * KIB);
    complete.complete(10 * KIB);
    oldest.add(10 * KIB);
    older.add(10 * KIB);
    expect(young.add(20 * KIB)).to.equal(true);
    expect(evicted).to.deep.equal(['oldest']);
    expect(young.add(60 * KIB)).to.equal(false);
    expect(evicted).to.deep.equal(['oldest', 'older']);
    expect(budget.used).to.equal((26 + 36) * KIB);
  });

  it('rejects more bytes of an old body instead of evicting a younger one', () => {
    const budget = new BodyBudget(100 * KIB);
    const [old, young] = [budget.open(neverEvicted), budget.open(neverEvicted)];
    old.add(10 * KIB);
    young.add(40 * KIB);
    expect(old.add(40 * KIB)).to.equal(false);
    expect(young.add(10 * KIB)).to.equal(true);
  });
});
