import { expect } from 'chai';
import { type ClaimScenario, SERVED_CLAIM, observationOf, describeStep } from './testing/claim-observation.js';
import { plan } from './plan.js';

describe('the next step of a claim whose pool no longer serves its namespace', () => {
  function stepOf(more: ClaimScenario, namespaces = ['others']): string {
    const observed = observationOf({ ...SERVED_CLAIM, ...more });
    const { resolution } = observed;
    if (resolution.kind !== 'served') throw new TypeError('the claim is served');
    const pool = { ...resolution.pool, namespaces: new Set(namespaces) };
    const served = { ...observed, resolution: { ...resolution, pool } };
    return describeStep(plan(served, { isLive: true, arePodsLive: true }));
  }

  it('is not to allocate another address, even if the claim requests one', () => {
    expect(stepOf({ request: '["10.0.0.9"]' })).to.match(
      /^write \[10\.0\.0\.5\/24\] SuccessfulAllocation; .*PoolNotFound: AddressPool blue does not serve namespace vms: add it to "namespaces"/,
    );
    expect(stepOf({ request: '["10.0.0.9"]' }, ['vms'])).to.equal('allocate for move: 10.0.0.9');
  });

  it('is to allocate again the addresses that its status shows', () => {
    expect(stepOf({ held: [] })).to.equal('allocate for need: 10.0.0.5');
  });
});
