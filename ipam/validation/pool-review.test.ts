import { expect } from 'chai';
import { type PoolGiven, adminPool } from '../../test/pool-objects.js';
import {
  type ValidatedObjects,
  coolingLease,
  poolLeaseOf,
  reservedLease,
  validationViewOf,
} from './testing/validation-view.js';
import { type PoolReview, reviewPool } from './pool-review.js';
import type { ReviewCheck, ReviewResult } from './review-result.js';

interface Case extends ValidatedObjects {
  name: string;
  /** What pool `p` is before; absent: it is created. */
  was?: PoolGiven;
  becomes: PoolGiven;
  /** Of each refusal its check. */
  refused?: ReviewCheck[];
  /** In the messages of the refusals, or the warnings. */
  text?: string[];
  warnings?: number;
}

function reviewed({ was, becomes, ...seen }: Case): ReviewResult {
  const pool = adminPool('p', becomes);
  const oldPool = was && adminPool('p', was);
  const review: PoolReview =
    oldPool === undefined ? { operation: 'CREATE', pool } : { operation: 'UPDATE', pool, oldPool };
  const pools = [...(seen.pools ?? []), ...(oldPool === undefined ? [] : [oldPool])];
  return reviewPool(review, validationViewOf({ ...seen, pools }));
}

const CASES: Case[] = [
  { name: 'a good pool', becomes: {} },
  {
    name: 'a pool with several problems, naming the field of each',
    becomes: { subnets: [{ cidr: '10.0.0.0/24', ranges: ['10.0.0.9-10.0.0.5'], gateway: '10.9.0.1' }] },
    refused: ['spec', 'spec'],
    text: ['spec.subnets[0].ranges[0]: ', 'spec.subnets[0].gateway: '],
  },
  {
    name: 'subnets that overlap',
    becomes: { subnets: [{ cidr: '10.0.0.0/24' }, { cidr: '10.0.0.128/25' }] },
    refused: ['spec'],
    text: ['overlaps with'],
  },
  {
    name: 'new labels on a pool that is wrong already',
    was: { subnets: [] },
    becomes: { subnets: [], deleting: true },
  },
  {
    name: 'a second pool for the users of a network',
    pools: [adminPool('q', { cidr: '10.1.0.0/24' })],
    becomes: {},
    refused: ['conflict'],
    text: ['AddressPool q', '"blue"', 'all namespaces'],
  },
  {
    name: 'a second pool for some of the users',
    pools: [adminPool('q', { cidr: '10.1.0.0/24', namespaces: ['a', 'b'] })],
    becomes: { namespaces: ['b', 'c'] },
    refused: ['conflict'],
    text: ['namespace b '],
  },
  {
    name: 'a second pool for other users',
    pools: [adminPool('q', { cidr: '10.1.0.0/24', namespaces: ['a'] })],
    becomes: { namespaces: ['c'] },
  },
  {
    name: 'a second pool for another network',
    pools: [adminPool('q', { cidr: '10.1.0.0/24', network: 'red' })],
    becomes: {},
  },
  {
    name: 'a pool in place of one that is being deleted',
    pools: [adminPool('q', { cidr: '10.1.0.0/24', deleting: true })],
    becomes: {},
  },
  { name: 'a pool beside one that cannot be served', pools: [adminPool('q', { subnets: [] })], becomes: {} },
  {
    name: 'users that make it a rival',
    pools: [adminPool('q', { cidr: '10.1.0.0/24', namespaces: ['a'] })],
    was: { namespaces: ['c'] },
    becomes: { namespaces: ['c', 'a'] },
    refused: ['conflict'],
  },
  {
    name: 'a change of one that was a rival before',
    pools: [adminPool('q', { cidr: '10.1.0.0/24' })],
    was: {},
    becomes: { cidr: '10.2.0.0/24' },
  },
  {
    name: 'a pool in place of a derived one, with a warning',
    pools: [adminPool('blue.vms', { nadNamespace: 'vms' })],
    becomes: {},
    warnings: 1,
    text: ['in place of AddressPool blue.vms'],
  },
  {
    name: 'to lose a leased address',
    was: {},
    becomes: { cidr: '10.0.0.0/28' },
    leases: { p: [poolLeaseOf('10.0.0.5'), poolLeaseOf('10.0.0.200')] },
    refused: ['shrink'],
    text: ['spec.subnets: 1 leased address would', '10.0.0.200 (IPAMClaim vms/vm1.data)', 'reserved'],
  },
  {
    name: 'to lose many leased addresses, of which it names five',
    was: {},
    becomes: { cidr: '10.1.0.0/24' },
    leases: { p: [9, 10, 8, 7, 6, 5, 4].map((last) => poolLeaseOf(`10.0.0.${last}`, { claim: `vm${last}` })) },
    refused: ['shrink'],
    text: ['7 leased addresses', '10.0.0.4 (IPAMClaim vms/vm4), 10.0.0.5', '10.0.0.8 (IPAMClaim vms/vm8) and 2 more'],
  },
  {
    name: 'to exclude a leased address',
    was: {},
    becomes: { subnets: [{ cidr: '10.0.0.0/24', exclude: ['10.0.0.5'] }] },
    leases: { p: [poolLeaseOf('10.0.0.5')] },
    refused: ['shrink'],
  },
  {
    name: 'to make a leased address the gateway',
    was: {},
    becomes: { subnets: [{ cidr: '10.0.0.0/24', gateway: '10.0.0.5' }] },
    leases: { p: [poolLeaseOf('10.0.0.5')] },
    refused: ['shrink'],
  },
  {
    name: 'to lose an address that an admin reserved',
    was: {},
    becomes: { cidr: '10.0.0.0/28' },
    leases: { p: [reservedLease('10.0.0.200')] },
    refused: ['shrink'],
    text: ['10.0.0.200 (reserved)'],
  },
  {
    name: 'to reserve a leased address',
    was: {},
    becomes: { subnets: [{ cidr: '10.0.0.0/24', reserved: ['10.0.0.5'] }] },
    leases: { p: [poolLeaseOf('10.0.0.5')] },
  },
  {
    name: 'to lose an address that cools down',
    was: {},
    becomes: { cidr: '10.0.0.0/28' },
    leases: { p: [coolingLease('10.0.0.200')] },
  },
  {
    name: 'a change that has nothing to do with what was lost before',
    was: { cidr: '10.0.0.0/28' },
    becomes: { cidr: '10.0.0.0/28', cooldownSeconds: 60 },
    leases: { p: [poolLeaseOf('10.0.0.200')] },
  },
  {
    name: 'to grow',
    was: { cidr: '10.0.0.0/28' },
    becomes: { cidr: '10.0.0.0/24' },
    leases: { p: [poolLeaseOf('10.0.0.5')] },
  },
  {
    name: 'a new pool of a name that has leases elsewhere',
    becomes: { cidr: '10.9.0.0/24' },
    leases: { p: [poolLeaseOf('10.0.0.5')] },
    refused: ['shrink'],
  },
  {
    name: 'another network, with leases',
    was: {},
    becomes: { network: 'red' },
    leases: { p: [poolLeaseOf('10.0.0.5')] },
    refused: ['network'],
    text: ['"red" instead of "blue"', '10.0.0.5 (IPAMClaim vms/vm1.data)'],
  },
  { name: 'another network, without leases', was: {}, becomes: { network: 'red' } },
  {
    name: 'another address space, with leases',
    was: {},
    becomes: { addressSpace: 'lab' },
    leases: { p: [poolLeaseOf('10.0.0.5')] },
    refused: ['address-space'],
    text: ['leases in "blue"', '"lab"'],
  },
  {
    name: 'another address space, while addresses cool down',
    was: {},
    becomes: { addressSpace: 'lab' },
    leases: { p: [coolingLease('10.0.0.5')] },
    refused: ['address-space'],
    text: ['10.0.0.5 (cooling down)'],
  },
  {
    name: 'the same address space by its name',
    was: {},
    becomes: { addressSpace: 'blue' },
    leases: { p: [poolLeaseOf('10.0.0.5')] },
  },
  {
    name: 'a short cool-down, with a warning',
    becomes: { cooldownSeconds: 59 },
    warnings: 1,
    text: ['spec.cooldownSeconds: 59', '60 s'],
  },
  { name: 'a cool-down that is long enough', becomes: { cooldownSeconds: 60 } },
  {
    name: 'blocks as large as the subnet, with a warning',
    becomes: { blockSize: { ipv4: 24 } },
    warnings: 1,
    text: ['spec.blockSize.ipv4: 24 makes one block of spec.subnets', 'write 25 or more, or add addresses'],
  },
  {
    name: 'blocks larger than what may be leased of the subnet, with a warning',
    becomes: { blockSize: { ipv4: 16 }, subnets: [{ cidr: '10.0.0.0/16', ranges: ['10.0.9.0-10.0.9.63'] }] },
    warnings: 1,
    text: ['spec.blockSize.ipv4: 16 makes one block', 'write 27 or more'],
  },
  {
    name: 'blocks of one address where there is but one, with a warning',
    becomes: { blockSize: { ipv4: 32 }, cidr: '10.0.0.5/32' },
    warnings: 1,
    text: ['spec.blockSize.ipv4: 32 makes one block', 'lent none: add addresses'],
  },
  {
    name: 'blocks of which one family has too few, with a warning',
    becomes: { blockSize: { ipv4: 26, ipv6: 64 }, subnets: [{ cidr: '10.0.0.0/24' }, { cidr: 'fd00::/64' }] },
    warnings: 1,
    text: ['spec.blockSize.ipv6: 64', 'write 65 or more'],
  },
  { name: 'two blocks', becomes: { blockSize: { ipv4: 25 } } },
  {
    name: 'a block in each of two subnets',
    becomes: { blockSize: { ipv4: 24 }, subnets: [{ cidr: '10.0.0.0/24' }, { cidr: '10.0.1.0/24' }] },
  },
  { name: 'a small pool that says nothing of blocks', becomes: { cidr: '10.0.0.0/28' } },
  {
    name: 'a pool that overlaps another in its address space, with a warning',
    pools: [adminPool('q', { cidr: '10.0.0.128/25', network: 'red', addressSpace: 'blue' })],
    becomes: {},
    warnings: 1,
    text: ['from 10.0.0.129 on', 'AddressPool q', '"blue"'],
  },
  {
    name: 'a pool that overlaps another in another address space',
    pools: [adminPool('q', { cidr: '10.0.0.128/25', network: 'red' })],
    becomes: {},
  },
  {
    name: 'to leave out a namespace whose workloads have addresses, with a warning',
    was: {},
    becomes: { namespaces: ['other'] },
    leases: { p: [poolLeaseOf('10.0.0.5')] },
    warnings: 1,
    text: ['workloads of vms'],
  },
];

describe('the review of a pool', () => {
  for (const given of CASES) {
    const { name, refused = [], text = [], warnings = 0 } = given;
    it(`${refused.length > 0 ? 'refuses' : 'allows'} ${name}`, () => {
      const verdict = reviewed(given);
      expect(verdict.refusals.map(({ check }) => check)).to.deep.equal(refused);
      expect(verdict.warnings).to.have.length(warnings);
      const words = [...verdict.refusals.map(({ message }) => message), ...verdict.warnings].join('\n');
      for (const expected of text) expect(words).to.include(expected);
    });
  }

  it('keeps warnings as short as the API server shows them', () => {
    const pools = ['q', 'r'].map((name) => adminPool(name, { network: name, addressSpace: 'blue' }));
    const { warnings } = reviewed({ name: '', becomes: { cooldownSeconds: 1 }, pools });
    expect(warnings).to.have.length(3);
    for (const warning of warnings) expect(warning.length).to.be.at.most(256);
  });

  it('refuses the deletion of a pool with leases, saying who has them', () => {
    const leases = { p: [poolLeaseOf('10.0.0.5'), reservedLease('10.0.0.6'), coolingLease('10.0.0.7')] };
    const { refusals } = reviewPool({ operation: 'DELETE', oldPool: adminPool('p') }, validationViewOf({ leases }));
    expect(refusals.map(({ check }) => check)).to.deep.equal(['in-use']);
    const [{ message } = { message: '' }] = refusals;
    expect(message).to.include('2 leased addresses: 10.0.0.5 (IPAMClaim vms/vm1.data), 10.0.0.6 (reserved).');
  });

  it('allows the deletion of a pool whose addresses only cool down', () => {
    const view = validationViewOf({ leases: { p: [coolingLease('10.0.0.5')], q: [poolLeaseOf('10.0.0.6')] } });
    expect(reviewPool({ operation: 'DELETE', oldPool: adminPool('p') }, view).refusals).to.deep.equal([]);
  });
});
