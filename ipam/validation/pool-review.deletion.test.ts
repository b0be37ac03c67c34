import { expect } from 'chai';
import { RESPONDERS_NAMESPACE } from '../../api/names.js';
import { adminPool } from '../../test/objects/pool-objects.js';
import { reviewPool } from './pool-review.js';
import { coolingLease, poolLeaseOf, reservedLease, validationViewOf } from './testing/validation-view.js';
import type { PoolLease } from './review.js';

function ofResponder(address: string, claim = 'holdfast-responder-0123abcd-0'): PoolLease {
  const lease = poolLeaseOf(address, { claim });
  return { ...lease, owner: { ...lease.owner!, namespace: RESPONDERS_NAMESPACE } };
}

describe('The deletion of an AddressPool', () => {
  it('is refused while it has leases, and the message names their owners', () => {
    const leases = { p: [poolLeaseOf('10.0.0.5'), reservedLease('10.0.0.6'), coolingLease('10.0.0.7')] };
    const { refusals } = reviewPool({ operation: 'DELETE', oldPool: adminPool('p') }, validationViewOf({ leases }));
    expect(refusals.map(({ check }) => check)).to.deep.equal(['in-use']);
    const [{ message } = { message: '' }] = refusals;
    expect(message).to.include('2 leased addresses: 10.0.0.5 (IPAMClaim vms/vm1.data), 10.0.0.6 (reserved).');
  });

  it('is allowed if only its responders have addresses, because they end with it', () => {
    const p = [ofResponder('10.0.0.5'), ofResponder('10.0.0.6')];
    const review = reviewPool({ operation: 'DELETE', oldPool: adminPool('p') }, validationViewOf({ leases: { p } }));
    expect(review.refusals).to.deep.equal([]);
  });

  it('is refused while others have addresses, and the message does not name its responders', () => {
    const p = [ofResponder('10.0.0.5'), poolLeaseOf('10.0.0.6')];
    const review = reviewPool({ operation: 'DELETE', oldPool: adminPool('p') }, validationViewOf({ leases: { p } }));
    expect(review.refusals.map(({ message }) => message)).to.deep.equal([
      'it has 1 leased address: 10.0.0.6 (IPAMClaim vms/vm1.data). First delete their owners and the reservations',
    ]);
  });

  it('is refused while a claim that an administrator created in the namespace of responders has an address', () => {
    const p = [ofResponder('10.0.0.5'), ofResponder('10.0.0.6', 'by-hand')];
    const review = reviewPool({ operation: 'DELETE', oldPool: adminPool('p') }, validationViewOf({ leases: { p } }));
    expect(review.refusals.map(({ message }) => message)).to.deep.equal([
      'it has 1 leased address: 10.0.0.6 (IPAMClaim holdfast-responders/by-hand). First delete their owners and the reservations',
    ]);
  });

  it('is allowed if its addresses only cool down', () => {
    const view = validationViewOf({ leases: { p: [coolingLease('10.0.0.5')], q: [poolLeaseOf('10.0.0.6')] } });
    expect(reviewPool({ operation: 'DELETE', oldPool: adminPool('p') }, view).refusals).to.deep.equal([]);
  });
});
