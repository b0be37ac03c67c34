import { expect } from 'chai';
import type { Resolution } from '../../addressing/directory/resolution.js';
import { PoolGracePeriods } from './observe.js';

const EXPECTED_POOL: Resolution = { kind: 'unserved', message: 'not there yet', isPoolPending: true };
const MISSING_POOL: Resolution = { kind: 'unserved', message: 'there is none' };

describe('the grace period of a pool that does not exist yet', () => {
  it('lasts ten seconds from the first sync of the waiting claim', () => {
    const gracePeriods = new PoolGracePeriods();
    expect(gracePeriods.applyTo('vms/a', EXPECTED_POOL, 1_000)).to.deep.equal({ ...EXPECTED_POOL, isUncertain: true });
    expect(gracePeriods.applyTo('vms/a', EXPECTED_POOL, 10_999)).to.deep.equal({ ...EXPECTED_POOL, isUncertain: true });
    expect(gracePeriods.remainingMs('vms/a', 10_999)).to.equal(1);
    expect(gracePeriods.applyTo('vms/a', EXPECTED_POOL, 11_000)).to.equal(EXPECTED_POOL);
    expect(gracePeriods.remainingMs('vms/a', 11_000)).to.equal(0);
  });

  it('starts again after the pool existed or the claim was deleted', () => {
    const gracePeriods = new PoolGracePeriods();
    gracePeriods.applyTo('vms/a', EXPECTED_POOL, 0);
    expect(gracePeriods.applyTo('vms/a', MISSING_POOL, 20_000)).to.equal(MISSING_POOL);
    expect(gracePeriods.remainingMs('vms/a', 20_000)).to.equal(0);
    gracePeriods.applyTo('vms/a', EXPECTED_POOL, 30_000);
    gracePeriods.forget('vms/a');
    gracePeriods.applyTo('vms/a', EXPECTED_POOL, 60_000);
    expect(gracePeriods.remainingMs('vms/a', 60_000)).to.equal(10_000);
  });

  it('does not apply to a pool that no NAD describes', () => {
    const gracePeriods = new PoolGracePeriods();
    expect(gracePeriods.applyTo('vms/a', MISSING_POOL, 0)).to.equal(MISSING_POOL);
    expect(gracePeriods.remainingMs('vms/a', 0)).to.equal(0);
  });
});
