import { expect } from 'chai';
import { type ResolutionTable, resolve } from './resolution.js';

/** A cluster without pools and NADs. */
const EMPTY = {
  areNadsServed: () => true,
  nad: () => undefined,
  nadsOf: () => [],
  poolsOf: () => [],
  adminPools: () => [],
  derivedPools: () => [],
} as unknown as ResolutionTable;

describe('the pool of a claim', () => {
  it('is refused with a message that fits into a condition, however long the name of the network is', () => {
    const resolution = resolve({ namespace: 'tenant', network: 'n'.repeat(1_000_000) }, EMPTY);
    expect(resolution.kind).to.equal('foreign');
    expect('message' in resolution && resolution.message.length).to.be.below(1_024);
  });
});
