import { expect } from 'chai';
import type { PoolSubnet } from '../../api/address-pool.js';
import { derivedPool } from '../../addressing/pool/derived-pool.js';
import { adminPool } from '../../test/objects/pool-objects.js';
import { reviewPool } from './pool-review.js';
import { coolingLease, poolLeaseOf, validationViewOf } from './testing/validation-view.js';

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
    return reviewPool({ operation: 'UPDATE', pool: poolWith([NEW], namespaces), oldPool }, view).refusals;
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
