import { expect } from 'chai';
import type { AddressPool } from '../../api/address-pool.js';
import { adminPool } from '../../test/objects/pool-objects.js';
import { HEALTHY, ago } from '../testing/healthy-cluster.js';
import { checkLockedLeases, checkNads } from './check-addressing.js';

const HOUR_MS = 3_600_000;

describe('addresses that Secrets with network data keep from others', () => {
  const lockedFor = (...ages: number[]) =>
    ages.map((age, index) => {
      return { name: `blue.10-0-0-${index}`, secret: 'lab/net', releasedAt: HEALTHY.now! - age };
    });

  it('are found if they were released long ago, and five of them are named', () => {
    const ages = [1_000, ...Array.from({ length: 6 }, () => HOUR_MS)];
    const [finding, ...more] = checkLockedLeases({ ...HEALTHY, lockedLeases: lockedFor(...ages) });
    expect(more).to.deep.equal([]);
    expect(finding).to.include({ severity: 'warning', check: 'locks', object: 'AddressLeases (6)' });
    expect(finding?.problem)
      .to.include('blue.10-0-0-1 (Secret lab/net)')
      .and.to.match(/ and 1 more$/);
    expect(finding?.problem).not.to.include('10-0-0-0');
  });

  it('are none if guest has just begun, or the user may not read leases', () => {
    expect(checkLockedLeases({ ...HEALTHY, lockedLeases: lockedFor(1_000) })).to.deep.equal([]);
    expect(checkLockedLeases({ ...HEALTHY, lockedLeases: undefined })).to.deep.equal([]);
  });
});

describe('a NAD without a pool', () => {
  it('is found unless it is new: its pool is derived meanwhile', () => {
    const found = [0, HOUR_MS].map((age) => {
      const metadata = { namespace: 'lab', name: 'blue', creationTimestamp: ago(age) };
      const spec = { config: '{"name": "blue", "type": "bridge", "ipam": {"type": "holdfast"}}' };
      return checkNads({ ...HEALTHY, nads: [{ metadata, spec }] }).map(({ problem }) => problem);
    });
    expect(found).to.deep.equal([[], ['no AddressPool serves its network']]);
  });

  it('needs subnets or a pool of an administrator if it names no subnets', () => {
    const remedyFor = (ipam: object) => {
      const config = JSON.stringify({ name: 'blue', type: 'bridge', ipam: { type: 'holdfast', ...ipam } });
      const metadata = { namespace: 'lab', name: 'blue', creationTimestamp: ago(HOUR_MS) };
      return checkNads({ ...HEALTHY, nads: [{ metadata, spec: { config } }] })[0]?.remedy;
    };
    expect(remedyFor({})).to.match(/^create an AddressPool for the network, or add subnets/);
    expect(remedyFor({ range: '10.0.0.0/24' })).to.match(/^look at the events of the NAD/);
    expect(remedyFor({ subnets: [{ cidr: '10.0.0.0/24' }] })).to.match(/^look at the events of the NAD/);
  });
});

describe('a NAD whose bridge has an address of the pool', () => {
  it('is found with the pool that serves it', () => {
    const config = JSON.stringify({ name: 'blue', type: 'bridge', isGateway: true, ipam: { type: 'holdfast' } });
    const nads = [{ metadata: { namespace: 'lab', name: 'blue' }, spec: { config } }];
    const problemsWith = (...pools: AddressPool[]) =>
      checkNads({ ...HEALTHY, nads, pools }).map(({ problem }) => problem);
    const derived = adminPool('blue.lab', { cidr: '10.0.0.0/24', nadNamespace: 'lab' });
    expect(problemsWith(derived).join()).to.match(/^spec\.config\.isGateway gives 10\.0\.0\.1 to the bridge/);
    expect(
      problemsWith(derived, adminPool('blue', { subnets: [{ cidr: '10.1.0.0/24', gateway: '10.1.0.9' }] })),
    ).to.deep.equal([]);
    const ofOthers = { namespaces: ['other'], subnets: [{ cidr: '10.1.0.0/24', gateway: '10.1.0.9' }] };
    expect(problemsWith(derived, adminPool('blue', ofOthers))).to.have.length(1);
  });
});
