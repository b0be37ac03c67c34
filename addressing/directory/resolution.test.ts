import { expect } from 'chai';
import { claimOf } from '../../test/objects/pool-objects.js';
import { type ResolutionTable, resolve, userOfClaim } from './resolution.js';

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

describe('the pool of another namespace, from which a claim has addresses', () => {
  const claim = { ...claimOf('vms/c', 'shared/blue'), status: { ips: ['10.9.0.5/24'] } };
  const pool = { namespaces: ['shared'], state: { kind: 'served', pool: { name: 'blue.shared' } } };
  const table = { ...EMPTY, derivedPools: () => [pool] } as unknown as ResolutionTable;

  it('still serves the claim when it no longer serves the namespace', () => {
    expect(resolve({ ...userOfClaim(claim), keepsPool: true }, table).kind).to.equal('served');
  });

  it('does not serve a claim only because it shows addresses', () => {
    expect(resolve(userOfClaim(claim), table)).to.have.property('kind', 'foreign');
  });
});
