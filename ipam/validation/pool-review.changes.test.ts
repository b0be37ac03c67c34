import { expect } from 'chai';
import type { PoolSubnet } from '../../api/address-pool.js';
import { derivedPool } from '../../addressing/pool/derived-pool.js';
import { adminPool, holdfastConfig, nad } from '../../test/objects/pool-objects.js';
import { runAtOnce } from '../../kube/run-in-slices.js';
import { type PoolReview, reviewPool } from './pool-review.js';
import { coolingLease, poolLeaseOf, reservedLease, validationViewOf } from './testing/validation-view.js';
import { RESPONDERS_NAMESPACE } from '../../api/names.js';
import type { PoolLease, ValidationView } from './review.js';

const reviewed = (review: PoolReview, view: ValidationView) => runAtOnce(reviewPool(review, view));

const OLD: PoolSubnet = { cidr: '10.9.0.0/24' };
const NEW: PoolSubnet = { cidr: '10.8.0.0/24' };

describe('the removal of a range from a pool that replaces a derived pool', () => {
  const derived = derivedPool('vms', { network: 'blue', subnets: [OLD] });
  const poolWith = (subnets: PoolSubnet[], namespaces?: string[]) => {
    const pool = adminPool('blue', namespaces && { namespaces });
    return { ...pool, spec: { ...pool.spec, subnets } };
  };

  function review(leases: readonly ReturnType<typeof poolLeaseOf>[], namespaces?: string[]) {
    const oldPool = poolWith([{ ...OLD, draining: [OLD.cidr] }, NEW], namespaces);
    const view = validationViewOf({ pools: [derived, oldPool], leases: { [derived.metadata.name]: leases } });
    return reviewed({ operation: 'UPDATE', pool: poolWith([NEW], namespaces), oldPool }, view).refusals;
  }

  it('is refused while VMs that it serves have addresses of it', () => {
    const [refusal, ...more] = review([poolLeaseOf('10.9.0.5')]);
    expect(more).to.deep.equal([]);
    expect(refusal?.check).to.equal('shrink');
    expect(refusal?.message).to.include('1 leased address would no longer be in the pool: 10.9.0.5 (IPAMClaim vms/vm1');
  });

  it('is accepted when these addresses are released', () => {
    expect(review([coolingLease('10.9.0.5')])).to.deep.equal([]);
  });

  it('is accepted while only VMs that it does not serve have addresses of it', () => {
    expect(review([poolLeaseOf('10.9.0.5')], ['lab'])).to.deep.equal([]);
  });
});

describe('the refusal of a change of a derived pool', () => {
  const oldPool = derivedPool('vms', { network: 'blue', subnets: [{ cidr: '10.9.0.0/24' }] });
  const pool = { ...oldPool, spec: { ...oldPool.spec, subnets: [{ cidr: '10.9.0.0/16' }] } };
  const messageWith = (...nads: ReturnType<typeof nad>[]) =>
    reviewed({ operation: 'UPDATE', pool, oldPool }, validationViewOf({ pools: [oldPool], nads })).refusals[0]?.message;
  const others = [
    nad('vms/other', { name: 'blue', type: 'bridge', ipam: { type: 'static' } }, 1),
    nad('vms/without-subnets', holdfastConfig(), 2),
    nad('vms/invalid', holdfastConfig({ subnets: [{ cidr: 'x' }] }), 3),
  ];

  it('names the oldest NAD that requests the pool, and none that does not', () => {
    const config = holdfastConfig({ subnets: [{ cidr: '10.9.0.0/24' }] });
    expect(messageWith(...others, nad('vms/young', config, 5), nad('vms/old', config, 4))).to.include(
      'follows NAD vms/old: change "ipam" there',
    );
  });

  it('says what to do if no NAD requests the pool', () => {
    expect(messageWith(...others)).to.include('no NAD requests it now: create the NAD, or delete the pool');
  });

  it('is for every field but publishMetrics, and names the NAD', () => {
    const nads = [nad('vms/lab', holdfastConfig({ subnets: [{ cidr: '10.9.0.0/24' }] }))];
    const update = (spec: object) => {
      const changed = { ...oldPool, spec: { ...oldPool.spec, ...spec } };
      return reviewed({ operation: 'UPDATE', pool: changed, oldPool }, validationViewOf({ pools: [oldPool], nads }));
    };
    const message = 'its spec follows NAD vms/lab: change "ipam" there. Only publishMetrics can be set on the pool';
    expect(update({ subnets: [{ cidr: '10.9.0.0/16' }] }).refusals).to.deep.equal([{ check: 'derived', message }]);
    expect(update({ publishMetrics: false }).refusals).to.deep.equal([]);
  });
});

function ofResponder(address: string, claim = 'holdfast-responder-0123abcd-0'): PoolLease {
  const lease = poolLeaseOf(address, { claim });
  return { ...lease, owner: { ...lease.owner!, namespace: RESPONDERS_NAMESPACE } };
}

describe('The deletion of an AddressPool', () => {
  it('is refused while it has leases, and the message names their owners', () => {
    const leases = { p: [poolLeaseOf('10.0.0.5'), reservedLease('10.0.0.6'), coolingLease('10.0.0.7')] };
    const { refusals } = reviewed({ operation: 'DELETE', oldPool: adminPool('p') }, validationViewOf({ leases }));
    expect(refusals.map(({ check }) => check)).to.deep.equal(['in-use']);
    const [{ message } = { message: '' }] = refusals;
    expect(message).to.include('2 leased addresses: 10.0.0.5 (IPAMClaim vms/vm1.data), 10.0.0.6 (reserved).');
  });

  it('is allowed if only its responders have addresses, because they end with it', () => {
    const p = [ofResponder('10.0.0.5'), ofResponder('10.0.0.6')];
    const review = reviewed({ operation: 'DELETE', oldPool: adminPool('p') }, validationViewOf({ leases: { p } }));
    expect(review.refusals).to.deep.equal([]);
  });

  it('is refused while others have addresses, and the message does not name its responders', () => {
    const p = [ofResponder('10.0.0.5'), poolLeaseOf('10.0.0.6')];
    const review = reviewed({ operation: 'DELETE', oldPool: adminPool('p') }, validationViewOf({ leases: { p } }));
    expect(review.refusals.map(({ message }) => message)).to.deep.equal([
      'it has 1 leased address: 10.0.0.6 (IPAMClaim vms/vm1.data). First delete their owners and the reservations',
    ]);
  });

  it('is refused while a claim that an administrator created in the namespace of responders has an address', () => {
    const p = [ofResponder('10.0.0.5'), ofResponder('10.0.0.6', 'by-hand')];
    const review = reviewed({ operation: 'DELETE', oldPool: adminPool('p') }, validationViewOf({ leases: { p } }));
    expect(review.refusals.map(({ message }) => message)).to.deep.equal([
      'it has 1 leased address: 10.0.0.6 (IPAMClaim holdfast-responders/by-hand). First delete their owners and the reservations',
    ]);
  });

  it('is allowed if its addresses only cool down', () => {
    const view = validationViewOf({ leases: { p: [coolingLease('10.0.0.5')], q: [poolLeaseOf('10.0.0.6')] } });
    expect(reviewed({ operation: 'DELETE', oldPool: adminPool('p') }, view).refusals).to.deep.equal([]);
  });
});
