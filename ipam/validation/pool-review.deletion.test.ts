import { expect } from 'chai';
import { RESPONDERS_NAMESPACE } from '../../api/names.js';
import { adminPool } from '../../test/pool-objects.js';
import { reviewPool } from './pool-review.js';
import { coolingLease, poolLeaseOf, reservedLease, validationViewOf } from './testing/validation-view.js';
import type { PoolLease } from './view.js';

describe('The deletion of an AddressPool', () => {
  it('is refused while it has leases, and the message names their owners', () => {
    const leases = { p: [poolLeaseOf('10.0.0.5'), reservedLease('10.0.0.6'), coolingLease('10.0.0.7')] };
    const { refusals } = reviewPool({ operation: 'DELETE', oldPool: adminPool('p') }, validationViewOf({ leases }));
    expect(refusals.map(({ check }) => check)).to.deep.equal(['in-use']);
    const [{ message } = { message: '' }] = refusals;
    expect(message).to.include('2 leased addresses: 10.0.0.5 (IPAMClaim vms/vm1.data), 10.0.0.6 (reserved).');
  });

  it('is refused with the way to end its responders', () => {
    const ofResponder = (address: string) => {
      const lease = poolLeaseOf(address, { claim: 'holdfast-responder-1' });
      return { ...lease, owner: { ...lease.owner!, namespace: RESPONDERS_NAMESPACE } };
    };
    const refusalOf = (...p: PoolLease[]) =>
      reviewPool({ operation: 'DELETE', oldPool: adminPool('p') }, validationViewOf({ leases: { p } })).refusals[0]
        ?.message;
    const remedy = 'First remove spec.guest.dhcp, which ends the responders that hold 1 of them, and ';
    expect(refusalOf(ofResponder('10.0.0.5'))).to.include(`${remedy}wait until they are free`);
    expect(refusalOf(ofResponder('10.0.0.5'), poolLeaseOf('10.0.0.6'))).to.include(
      `${remedy}delete the other owners and the reservations`,
    );
  });

  it('is allowed if its addresses only cool down', () => {
    const view = validationViewOf({ leases: { p: [coolingLease('10.0.0.5')], q: [poolLeaseOf('10.0.0.6')] } });
    expect(reviewPool({ operation: 'DELETE', oldPool: adminPool('p') }, view).refusals).to.deep.equal([]);
  });
});
