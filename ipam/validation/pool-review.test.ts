import { expect } from 'chai';
import { type PoolGiven, adminPool } from '../../test/objects/pool-objects.js';
import {
  type ValidatedObjects,
  coolingLease,
  poolLeaseOf,
  reservedLease,
  validationViewOf,
} from './testing/validation-view.js';
import { runAtOnce } from '../../kube/run-in-slices.js';
import { type PoolReview, reviewPool } from './pool-review.js';
import type { ReviewCheck, ValidationResult } from './review.js';

interface Case extends ValidatedObjects {
  name: string;
  /** The old pool `p`; absent: the pool is created. */
  was?: PoolGiven;
  becomes: PoolGiven;
  /** The check of each refusal. */
  refused?: ReviewCheck[];
  /** Texts in the messages of the refusals or warnings. */
  text?: string[];
  warnings?: number;
}

function reviewed({ was, becomes, ...seen }: Case): ValidationResult {
  const pool = adminPool('p', becomes);
  const oldPool = was && adminPool('p', was);
  const review: PoolReview =
    oldPool === undefined ? { operation: 'CREATE', pool } : { operation: 'UPDATE', pool, oldPool };
  const pools = [...(seen.pools ?? []), ...(oldPool === undefined ? [] : [oldPool])];
  return runAtOnce(reviewPool(review, validationViewOf({ ...seen, pools })));
}

const CASES: Case[] = [
  { name: 'a valid pool', becomes: {} },
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
  { name: 'new labels on a pool that was invalid', was: { subnets: [] }, becomes: { subnets: [], deleting: true } },
  {
    name: 'a second pool for the users of a network',
    pools: [adminPool('q', { cidr: '10.1.0.0/24' })],
    becomes: {},
    refused: ['conflict'],
    text: ['AddressPool q', '"blue"', 'all namespaces'],
  },
  {
    name: 'a second pool for some of the users of a network',
    pools: [adminPool('q', { cidr: '10.1.0.0/24', namespaces: ['a', 'b'] })],
    becomes: { namespaces: ['b', 'c'] },
    refused: ['conflict'],
    text: ['namespace b. '],
  },
  {
    name: 'a second pool for other users',
    pools: [adminPool('q', { cidr: '10.1.0.0/24', namespaces: ['a'] })],
    becomes: { namespaces: ['c'] },
  },
  { name: 'a pool for another network', pools: [adminPool('q', { cidr: '10.1.0.0/24', network: 'red' })], becomes: {} },
  {
    name: 'a pool for the users of one that is being deleted',
    pools: [adminPool('q', { cidr: '10.1.0.0/24', deleting: true })],
    becomes: {},
  },
  { name: 'a pool beside an invalid one', pools: [adminPool('q', { subnets: [] })], becomes: {} },
  {
    name: 'new users that another pool serves',
    pools: [adminPool('q', { cidr: '10.1.0.0/24', namespaces: ['a'] })],
    was: { namespaces: ['c'] },
    becomes: { namespaces: ['c', 'a'] },
    refused: ['conflict'],
  },
  {
    name: 'a change of a pool that conflicted before',
    pools: [adminPool('q', { cidr: '10.1.0.0/24' })],
    was: {},
    becomes: { cidr: '10.2.0.0/24' },
  },
  {
    name: 'a pool that replaces a derived one, with a warning',
    pools: [adminPool('blue.vms', { nadNamespace: 'vms' })],
    becomes: {},
    warnings: 1,
    text: ['replaces AddressPool blue.vms'],
  },
  {
    name: 'the loss of a leased address',
    was: {},
    becomes: { cidr: '10.0.0.0/28' },
    leases: { p: [poolLeaseOf('10.0.0.5'), poolLeaseOf('10.0.0.200')] },
    refused: ['shrink'],
    text: ['spec.subnets: 1 leased address would', '10.0.0.200 (IPAMClaim vms/vm1.data)', 'draining'],
  },
  {
    name: 'the loss of many leased addresses, of which it names five',
    was: {},
    becomes: { cidr: '10.1.0.0/24' },
    leases: { p: [9, 10, 8, 7, 6, 5, 4].map((last) => poolLeaseOf(`10.0.0.${last}`, { claim: `vm${last}` })) },
    refused: ['shrink'],
    text: ['7 leased addresses', '10.0.0.4 (IPAMClaim vms/vm4), 10.0.0.5', '10.0.0.8 (IPAMClaim vms/vm8) and 2 more'],
  },
  {
    name: 'the exclusion of a leased address',
    was: {},
    becomes: { subnets: [{ cidr: '10.0.0.0/24', exclude: ['10.0.0.5'] }] },
    leases: { p: [poolLeaseOf('10.0.0.5')] },
    refused: ['shrink'],
  },
  {
    name: 'a leased address as the gateway',
    was: {},
    becomes: { subnets: [{ cidr: '10.0.0.0/24', gateway: '10.0.0.5' }] },
    leases: { p: [poolLeaseOf('10.0.0.5')] },
    refused: ['shrink'],
  },
  {
    name: 'the loss of a reserved address',
    was: {},
    becomes: { cidr: '10.0.0.0/28' },
    leases: { p: [reservedLease('10.0.0.200')] },
    refused: ['shrink'],
    text: ['10.0.0.200 (reserved)'],
  },
  {
    name: 'the reservation of a leased address',
    was: {},
    becomes: { subnets: [{ cidr: '10.0.0.0/24', reserved: ['10.0.0.5'] }] },
    leases: { p: [poolLeaseOf('10.0.0.5')] },
  },
  {
    name: 'the loss of an address that cools down',
    was: {},
    becomes: { cidr: '10.0.0.0/28' },
    leases: { p: [coolingLease('10.0.0.200')] },
  },
  {
    name: 'a change that loses no more than was lost before',
    was: { cidr: '10.0.0.0/28' },
    becomes: { cidr: '10.0.0.0/28', cooldownSeconds: 60 },
    leases: { p: [poolLeaseOf('10.0.0.200')] },
  },
  {
    name: 'more addresses',
    was: { cidr: '10.0.0.0/28' },
    becomes: { cidr: '10.0.0.0/24' },
    leases: { p: [poolLeaseOf('10.0.0.5')] },
  },
  {
    name: 'a new pool whose name has leases in another address space',
    becomes: { cidr: '10.9.0.0/24' },
    leases: { p: [poolLeaseOf('10.0.0.5')] },
    refused: ['shrink'],
  },
  {
    name: 'another network while addresses are leased',
    was: {},
    becomes: { network: 'red' },
    leases: { p: [poolLeaseOf('10.0.0.5')] },
    refused: ['network'],
    text: ['changing "blue" to "red"', '10.0.0.5 (IPAMClaim vms/vm1.data)'],
  },
  { name: 'another network if no address is leased', was: {}, becomes: { network: 'red' } },
  {
    name: 'another address space while addresses are leased',
    was: {},
    becomes: { addressSpace: 'lab' },
    leases: { p: [poolLeaseOf('10.0.0.5')] },
    refused: ['address-space'],
    text: ['leases in "blue"', '"lab"'],
  },
  {
    name: 'another address space while addresses cool down',
    was: {},
    becomes: { addressSpace: 'lab' },
    leases: { p: [coolingLease('10.0.0.5')] },
    refused: ['address-space'],
    text: ['10.0.0.5 (released)'],
  },
  {
    name: 'the explicit name of the default address space',
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
  {
    name: 'labels that no node can have, with a warning for each',
    becomes: { nodeSelector: { 'a b': 'c', zone: ' a', 'Example.com/x': '1', 'example.com/x': '1', blank: '' } },
    warnings: 3,
    text: ['no node can have the label "a b": "c"', '"zone": " a"', '"Example.com/x": "1"'],
  },
  { name: 'a sufficient cool-down', becomes: { cooldownSeconds: 60 } },
  {
    name: 'blocks as large as the subnet, with a warning',
    becomes: { blockSize: { ipv4: 24 } },
    warnings: 1,
    text: ['spec.blockSize.ipv4: 24 divides spec.subnets into one block', 'write 25 or more, or add addresses'],
  },
  {
    name: 'blocks larger than the leasable part of the subnet, with a warning',
    becomes: { blockSize: { ipv4: 16 }, subnets: [{ cidr: '10.0.0.0/16', ranges: ['10.0.9.0-10.0.9.63'] }] },
    warnings: 1,
    text: ['spec.blockSize.ipv4: 16 divides spec.subnets into one block', 'write 27 or more'],
  },
  {
    name: 'blocks of one address in a pool with a single address, with a warning',
    becomes: { blockSize: { ipv4: 32 }, cidr: '10.0.0.5/32' },
    warnings: 1,
    text: ['spec.blockSize.ipv4: 32 divides spec.subnets into one block', 'at least two: add addresses'],
  },
  {
    name: 'a block size that makes too few blocks of one family, with a warning',
    becomes: { blockSize: { ipv4: 26, ipv6: 64 }, subnets: [{ cidr: '10.0.0.0/24' }, { cidr: 'fd00::/64' }] },
    warnings: 1,
    text: ['spec.blockSize.ipv6: 64', 'write 65 or more'],
  },
  {
    name: 'draining of all addresses of a family, with a warning',
    becomes: { subnets: [{ cidr: '10.0.0.0/24' }, { cidr: 'fd00::/64', draining: ['fd00::/64'] }] },
    warnings: 1,
    text: ['spec.subnets: draining leaves no IPv6 address for new pods and VMs', 'Add a subnet or a range'],
  },
  {
    name: 'an exclusion of all addresses of a family, with a warning',
    becomes: { subnets: [{ cidr: '10.0.0.0/24', exclude: ['10.0.0.0/24'] }, { cidr: 'fd00::/64' }] },
    warnings: 1,
    text: ['spec.subnets: ranges, exclude and gateway leave no IPv4 address for pods and VMs'],
  },
  {
    name: 'draining of all addresses but the reserved ones, with a warning',
    becomes: { subnets: [{ cidr: '10.0.0.0/24', reserved: ['10.0.0.0/28'], draining: ['10.0.0.16-10.0.0.254'] }] },
    warnings: 1,
  },
  {
    name: 'draining of a subnet beside another one of its family',
    becomes: { subnets: [{ cidr: '10.0.0.0/24', draining: ['10.0.0.0/24'] }, { cidr: '10.0.1.0/24' }] },
  },
  { name: 'a pool of reserved addresses', becomes: { subnets: [{ cidr: '10.0.0.0/24', reserved: ['10.0.0.0/24'] }] } },
  { name: 'two blocks', becomes: { blockSize: { ipv4: 25 } } },
  {
    name: 'a block in each of two subnets',
    becomes: { blockSize: { ipv4: 24 }, subnets: [{ cidr: '10.0.0.0/24' }, { cidr: '10.0.1.0/24' }] },
  },
  { name: 'a small pool without a block size', becomes: { cidr: '10.0.0.0/28' } },
  {
    name: 'a pool that overlaps another one in its address space, with a warning',
    pools: [adminPool('q', { cidr: '10.0.0.128/25', network: 'red', addressSpace: 'blue' })],
    becomes: {},
    warnings: 1,
    text: ['from 10.0.0.129 on', 'AddressPool q', '"blue"'],
  },
  {
    name: 'a pool that overlaps another one in another address space',
    pools: [adminPool('q', { cidr: '10.0.0.128/25', network: 'red' })],
    becomes: {},
  },
  {
    name: 'the removal of a namespace whose workloads have addresses, with a warning',
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
      const result = reviewed(given);
      expect(result.refusals.map(({ check }) => check)).to.deep.equal(refused);
      expect(result.warnings).to.have.length(warnings);
      const words = [...result.refusals.map(({ message }) => message), ...result.warnings].join('\n');
      for (const expected of text) expect(words).to.include(expected);
    });
  }

  it('keeps warnings short enough for the API server to show them', () => {
    const pools = ['q', 'r'].map((name) => adminPool(name, { network: name, addressSpace: 'blue' }));
    const { warnings } = reviewed({ name: '', becomes: { cooldownSeconds: 1 }, pools });
    expect(warnings).to.have.length(3);
    for (const warning of warnings) expect(warning.length).to.be.at.most(256);
  });
});
