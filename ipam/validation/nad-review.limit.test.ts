import { expect } from 'chai';
import { runAtOnce } from '../../kube/run-in-slices.js';
import { adminPool, holdfastConfig, nad } from '../../test/objects/pool-objects.js';
import { MAX_DERIVED_POOLS, validationViewOf } from './testing/validation-view.js';
import { reviewNad } from './nad-review.js';

const review = (...given: Parameters<typeof reviewNad>) => runAtOnce(reviewNad(...given));
const config = (cidr: string) => holdfastConfig({ subnets: [{ cidr }] });
const poolsOf = (nadNamespace: string) =>
  Array.from({ length: MAX_DERIVED_POOLS }, (_, n) =>
    adminPool(`n${n}.${nadNamespace}`, { network: `n${n}`, nadNamespace, cidr: `10.1.${n}.0/24` }),
  );

describe('the review of a NAD in a namespace with many pools', () => {
  const created = { nad: nad('vms/n', config('10.0.0.0/24')) };

  it('refuses one more pool than the namespace may have, and says what to do', () => {
    const { refusals } = review(created, validationViewOf({ pools: poolsOf('vms') }));
    expect(refusals.map(({ check }) => check)).to.deep.equal(['limit']);
    for (const text of ['namespace vms has 5 derived AddressPools', 'delete NADs', '--max-derived-pools-per-namespace'])
      expect(refusals[0]?.message).to.include(text);
  });

  it('allows a change of a NAD that has a pool', () => {
    const pools = [adminPool('blue.vms', { nadNamespace: 'vms' }), ...poolsOf('vms')];
    const changed = { nad: nad('vms/n', config('10.0.0.0/23')), oldNad: nad('vms/n', config('10.0.0.0/24')) };
    expect(review(changed, validationViewOf({ pools })).refusals).to.deep.equal([]);
  });

  it('allows a NAD if the pools are those of another namespace, or its own is global', () => {
    expect(review(created, validationViewOf({ pools: poolsOf('others') })).refusals).to.deep.equal([]);
    const global = { nad: nad('default/n', config('10.0.0.0/24')) };
    expect(review(global, validationViewOf({ pools: poolsOf('default') })).refusals).to.deep.equal([]);
  });
});
