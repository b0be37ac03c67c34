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

describe('resolve', () => {
  it('returns a message that fits into a condition for a network name of any length', () => {
    const resolution = resolve({ namespace: 'tenant', network: 'n'.repeat(1_000_000) }, EMPTY);
    expect(resolution.kind).to.equal('foreign');
    expect('message' in resolution && resolution.message.length).to.be.below(1_024);
  });
});
