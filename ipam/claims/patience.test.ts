import { expect } from 'chai';
import type { Resolution } from '../directory/resolution.js';
import { Patience } from './patience.js';

const AWAITED: Resolution = { kind: 'unserved', message: 'not there yet', isOnItsWay: true };
const MISSING: Resolution = { kind: 'unserved', message: 'there is none' };

describe('patience with a pool that is on its way', () => {
  it('leaves the claim alone for ten seconds, from when it was first seen to wait', () => {
    const patience = new Patience();
    expect(patience.with('vms/a', AWAITED, 1_000)).to.deep.equal({ ...AWAITED, isUncertain: true });
    expect(patience.with('vms/a', AWAITED, 10_999)).to.deep.equal({ ...AWAITED, isUncertain: true });
    expect(patience.left('vms/a', 10_999)).to.equal(1);
    expect(patience.with('vms/a', AWAITED, 11_000)).to.equal(AWAITED);
    expect(patience.left('vms/a', 11_000)).to.equal(0);
  });

  it('begins anew after the pool was there, or the claim was gone', () => {
    const patience = new Patience();
    patience.with('vms/a', AWAITED, 0);
    expect(patience.with('vms/a', MISSING, 20_000)).to.equal(MISSING);
    expect(patience.left('vms/a', 20_000)).to.equal(0);
    patience.with('vms/a', AWAITED, 30_000);
    patience.forget('vms/a');
    patience.with('vms/a', AWAITED, 60_000);
    expect(patience.left('vms/a', 60_000)).to.equal(10_000);
  });

  it('waits for nothing that nobody will make', () => {
    const patience = new Patience();
    expect(patience.with('vms/a', MISSING, 0)).to.equal(MISSING);
    expect(patience.left('vms/a', 0)).to.equal(0);
  });
});
