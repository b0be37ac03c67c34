import { expect } from 'chai';
import type { AddressPool } from '../../api/address-pool.js';
import { transformNad } from '../../cluster/transforms.js';
import { runAtOnce } from '../../kube/run-in-slices.js';
import { adminPool, holdfastConfig, nadDefinition } from '../../test/objects/pool-objects.js';
import { reviewBridge } from './nad-config-review.js';
import { validationViewOf } from './testing/validation-view.js';

const SUBNETS = { subnets: [{ cidr: '10.0.0.0/24' }] };
const MESSAGE =
  'spec.config.isGateway gives 10.0.0.1 to the bridge of each node, and the pool allocates it to others: write it as the gateway of subnet 10.0.0.0/24';

function written(ipam: object, plugin: object = { isGateway: true }) {
  const nad = nadDefinition('vms/n', { ...holdfastConfig(ipam), ...plugin });
  return { written: nad, parsed: transformNad(nad) };
}

describe('the review of the address that a bridge takes', () => {
  const review = (nad: ReturnType<typeof written>, old?: ReturnType<typeof written>, pools: AddressPool[] = []) => {
    const { refusals, warnings } = runAtOnce(reviewBridge(nad, old, validationViewOf({ pools })));
    return { refused: refusals.map(({ message }) => message), warnings };
  };

  it('refuses a NAD whose pool allocates it, and only warns if that was so before', () => {
    expect(review(written(SUBNETS))).to.deep.equal({ refused: [MESSAGE], warnings: [] });
    expect(review(written(SUBNETS), written(SUBNETS, {}))).to.deep.equal({ refused: [MESSAGE], warnings: [] });
    expect(review(written(SUBNETS), written(SUBNETS))).to.deep.equal({ refused: [], warnings: [MESSAGE] });
  });

  it("warns if an administrator's pool allocates it, which the NAD cannot change", () => {
    const pools = [adminPool('blue')];
    for (const ipam of [{}, SUBNETS])
      expect(review(written(ipam), undefined, pools)).to.deep.equal({ refused: [], warnings: [MESSAGE] });
  });

  it('allows a pool with a gateway, a bridge without an address, and an unknown pool', () => {
    const nothing = { refused: [], warnings: [] };
    const subnets = [{ cidr: '10.0.0.0/24', gateway: '10.0.0.1' }];
    for (const nad of [
      written({ subnets }),
      written(SUBNETS, {}),
      written({}),
      written({ range: '10.0.0.0/24', gateway: '10.0.0.1' }),
    ])
      // oxfmt-ignore
      expect(review(nad)).to.deep.equal(nothing);
  });
});
