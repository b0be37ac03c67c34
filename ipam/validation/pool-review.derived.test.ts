import { expect } from 'chai';
import { derivedPool } from '../../addressing/pool/derived-pool.js';
import { holdfastConfig, nad } from '../../test/objects/pool-objects.js';
import { reviewPool } from './pool-review.js';
import { validationViewOf } from './testing/validation-view.js';

describe('the refusal of a change of a derived pool', () => {
  const oldPool = derivedPool('vms', { network: 'blue', subnets: [{ cidr: '10.9.0.0/24' }] });
  const pool = { ...oldPool, spec: { ...oldPool.spec, subnets: [{ cidr: '10.9.0.0/16' }] } };
  const messageWith = (...nads: ReturnType<typeof nad>[]) =>
    reviewPool({ operation: 'UPDATE', pool, oldPool }, validationViewOf({ pools: [oldPool], nads })).refusals[0]
      ?.message;
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
      return reviewPool({ operation: 'UPDATE', pool: changed, oldPool }, validationViewOf({ pools: [oldPool], nads }));
    };
    const message = 'its spec follows NAD vms/lab: change "ipam" there. Only publishMetrics can be set on the pool';
    expect(update({ subnets: [{ cidr: '10.9.0.0/16' }] }).refusals).to.deep.equal([{ check: 'derived', message }]);
    expect(update({ publishMetrics: false }).refusals).to.deep.equal([]);
  });
});
