import { expect } from 'chai';
import type { LeaseOwner } from '../../api/address-lease.js';
import { runAtOnce } from '../../kube/run-in-slices.js';
import { adminPool, holdfastConfig, nad } from '../../test/objects/pool-objects.js';
import { type ValidatedObjects, poolLeaseOf, validationViewOf } from './testing/validation-view.js';
import { reviewNad } from './nad-review.js';
import type { ReviewCheck } from './review.js';

const subnet = (cidr: string, more: object = {}) => holdfastConfig({ subnets: [{ cidr }], ...more });

interface Case extends ValidatedObjects {
  name: string;
  /** The old config of NAD vms/n; absent: the NAD is created. */
  was?: unknown;
  becomes: unknown;
  /** The day of its creation. */
  born?: number;
  refused?: ReviewCheck[];
  text?: string[];
  warnings?: number;
}

const OLDER = nad('vms/older', subnet('10.0.0.0/24'), 1);
const YOUNGER = nad('vms/younger', subnet('10.0.0.0/24'), 9);
const DERIVED = adminPool('blue.vms', { nadNamespace: 'vms' });
const GUARD = adminPool('guard', { network: 'red', addressSpace: 'lan', namespaces: ['x'] });
const IN_LAN = { addressSpace: 'lan' };
const FOREVER = { stickyMAC: { ttl: '9000h' } };
const LEASED = { 'blue.vms': [poolLeaseOf('10.0.0.200')] };
const leasedTo = (owner: LeaseOwner) => ({ 'blue.vms': [poolLeaseOf('10.0.0.200', { owner })] });

const onBridge = (bridge: string, network = 'blue', more: object = {}) => ({
  ...holdfastConfig({ subnets: [{ cidr: '10.0.0.0/24' }], ...more }, network),
  bridge,
});
/** Another tenant's network on bridge br0. */
const ON_WIRE = {
  pools: [adminPool('red.others', { network: 'red', nadNamespace: 'others' })],
  nads: [nad('others/red', onBridge('br0', 'red'))],
};

const CASES: Case[] = [
  { name: 'a NAD without IPAM', becomes: { name: 'blue', type: 'bridge' } },
  {
    name: 'a NAD of another IPAM with any config',
    becomes: { name: 'blue', type: 'bridge', ipam: { type: 'host-local', subnets: 7, allowPersistentIPs: 'x' } },
  },
  { name: 'a config that is not JSON', becomes: '{ "ipam": {"type": "holdfast"' },
  { name: 'a NAD with a subnet', becomes: subnet('10.0.0.0/24') },
  { name: "a NAD that leaves the addresses to an administrator's pool", becomes: holdfastConfig() },
  {
    name: 'an unknown key',
    becomes: holdfastConfig({ subnet: '10.0.0.0/24' }),
    refused: ['delegation'],
    text: ['spec.config.ipam.subnet is unknown: correct or remove it'],
  },
  {
    name: 'a flag of Holdfast with an invalid value',
    becomes: { ...subnet('10.0.0.0/24'), allowPersistentIPs: 'yes' },
    refused: ['delegation'],
    text: ['spec.config.allowPersistentIPs is "yes"'],
  },
  {
    name: 'an invalid subnet',
    becomes: subnet('10.0.0.7/24'),
    refused: ['delegation'],
    text: ['spec.config.ipam.subnets[0].cidr', '10.0.0.0/24'],
  },
  { name: 'what was invalid before', was: subnet('10.0.0.7/24'), becomes: { ...subnet('10.0.0.7/24'), mtu: 9000 } },
  { name: 'a second NAD with the same config', nads: [OLDER], becomes: subnet('10.0.0.0/24'), born: 5 },
  {
    name: 'a second NAD with the same meaning in other words',
    nads: [OLDER],
    becomes: holdfastConfig({ range: '10.0.0.9/24', addressSpace: 'blue' }),
    born: 5,
  },
  { name: 'a second NAD without subnets', nads: [OLDER], becomes: holdfastConfig(), born: 5 },
  {
    name: 'a second NAD that disagrees about a subnet',
    nads: [OLDER],
    becomes: subnet('10.1.0.0/24'),
    born: 5,
    refused: ['disagreement'],
    text: ['vms/older', '"blue"', 'subnets[0] is {"cidr":"10.0.0.0/24"} there and {"cidr":"10.1.0.0/24"} here'],
  },
  {
    name: 'a second NAD that disagrees about the address space',
    nads: [OLDER],
    becomes: subnet('10.0.0.0/24', { addressSpace: 'lab' }),
    born: 5,
    refused: ['disagreement'],
    text: ['addressSpace is "blue" there and "lab" here'],
  },
  {
    name: 'a new NAD that disagrees with one of the same creation time',
    nads: [nad('vms/z', subnet('10.0.0.0/24'), 5)],
    becomes: subnet('10.1.0.0/24'),
    born: 5,
    refused: ['disagreement'],
  },
  {
    name: 'another subnet in another namespace',
    nads: [nad('other/older', subnet('10.0.0.0/24'))],
    becomes: subnet('10.1.0.0/24'),
    born: 5,
  },
  {
    name: 'another subnet of another network',
    nads: [nad('vms/older', holdfastConfig({ subnets: [{ cidr: '10.0.0.0/24' }] }, 'red'))],
    becomes: subnet('10.1.0.0/24'),
    born: 5,
  },
  {
    name: 'another subnet than that of a NAD of another IPAM',
    nads: [nad('vms/older', { name: 'blue', type: 'bridge', ipam: { type: 'whereabouts', range: '10.0.0.0/24' } })],
    becomes: subnet('10.1.0.0/24'),
    born: 5,
  },
  {
    name: 'a younger NAD that starts to disagree with the oldest',
    nads: [OLDER, nad('vms/n', subnet('10.0.0.0/24'), 5)],
    was: subnet('10.0.0.0/24'),
    becomes: subnet('10.1.0.0/24'),
    born: 5,
    refused: ['disagreement'],
  },
  {
    name: 'the oldest NAD to change first, with a warning',
    nads: [nad('vms/n', subnet('10.0.0.0/24'), 5), YOUNGER],
    was: subnet('10.0.0.0/24'),
    becomes: subnet('10.1.0.0/24'),
    born: 5,
    warnings: 1,
    text: ['vms/younger now disagrees'],
  },
  {
    name: 'the loss of a leased address',
    pools: [DERIVED],
    leases: LEASED,
    was: subnet('10.0.0.0/24'),
    becomes: subnet('10.0.0.0/25'),
    refused: ['shrink'],
    text: ['AddressPool blue.vms', '10.0.0.200 (IPAMClaim vms/vm1.data)'],
  },
  {
    name: 'the loss of a leased address, without the names of owners in other namespaces',
    pools: [DERIVED],
    leases: leasedTo({ kind: 'IPAMClaim', namespace: 'others', name: 'a', uid: 'u' }),
    was: subnet('10.0.0.0/24'),
    becomes: subnet('10.0.0.0/25'),
    refused: ['shrink'],
    text: ['AddressPool blue.vms', '10.0.0.200 (in another namespace)'],
  },
  {
    name: 'a new NAD that would lose leased addresses of a deleted one',
    pools: [DERIVED],
    leases: LEASED,
    becomes: subnet('10.0.0.0/25'),
    refused: ['shrink'],
  },
  {
    name: 'addresses that another network leases on the same bridge, with a warning',
    ...ON_WIRE,
    becomes: onBridge('br0'),
    warnings: 1,
  },
  {
    name: 'a change of the bridge to one on which another network leases the same addresses, with a warning',
    ...ON_WIRE,
    was: onBridge('br1'),
    becomes: onBridge('br0'),
    warnings: 1,
  },
  { name: 'addresses that another network leases on another bridge', ...ON_WIRE, becomes: onBridge('br1') },
  {
    name: 'another network name on the same bridge while addresses of the old network are leased, with a warning',
    pools: [DERIVED],
    leases: LEASED,
    was: onBridge('br0'),
    becomes: onBridge('br0', 'red'),
    warnings: 1,
  },
  {
    name: 'another address space for a pool without leases, with a warning',
    pools: [DERIVED],
    was: subnet('10.0.0.0/24'),
    becomes: subnet('10.0.0.0/24', { addressSpace: 'lab' }),
    warnings: 1,
  },
  {
    name: 'another address space while addresses are leased',
    pools: [DERIVED],
    leases: LEASED,
    was: subnet('10.0.0.0/24'),
    becomes: subnet('10.0.0.0/24', { addressSpace: 'lab' }),
    refused: ['address-space'],
  },
  {
    name: 'more addresses',
    pools: [DERIVED],
    leases: LEASED,
    was: subnet('10.0.0.0/24'),
    becomes: subnet('10.0.0.0/16'),
  },
  {
    name: "a NAD without effect beside an administrator's pool, with a warning",
    pools: [adminPool('p')],
    becomes: subnet('10.0.0.0/24'),
    warnings: 1,
    text: ['AddressPool p serves network "blue" for namespace vms'],
  },
  {
    name: 'a short cool-down, with a warning',
    becomes: subnet('10.0.0.0/24', { cooldownSeconds: 5 }),
    warnings: 1,
    text: ['AddressPool blue.vms: spec.cooldownSeconds: 5'],
  },
  {
    name: 'a block size that makes too few blocks, with a warning',
    becomes: subnet('10.0.0.0/24', { blockSize: { ipv4: 24 } }),
    warnings: 1,
    text: ['AddressPool blue.vms: spec.blockSize.ipv4: 24'],
  },
  {
    name: 'a second NAD that disagrees about the namespaces',
    nads: [OLDER],
    becomes: subnet('10.0.0.0/24', { namespaces: ['b'] }),
    born: 5,
    refused: ['disagreement'],
    text: ['namespaces is ["vms"] there and ["b","vms"] here'],
  },
  {
    name: 'an invalid namespace name',
    becomes: subnet('10.0.0.0/24', { namespaces: ['b', 'team-*'] }),
    refused: ['delegation'],
    text: ['spec.config.ipam.namespaces[1]', '"team-*"'],
  },
  {
    name: 'the removal of namespaces whose workloads have addresses, with a warning that says how to serve them',
    pools: [DERIVED],
    leases: leasedTo({ kind: 'Pod', namespace: 'b', name: 'p', uid: 'u' }),
    was: subnet('10.0.0.0/24', { namespaces: ['*'] }),
    becomes: subnet('10.0.0.0/24'),
    warnings: 1,
    text: ['workloads of b have addresses', 'add them to "namespaces" in the ipam object of the NAD'],
  },
  {
    name: "an address space whose administrator's pool does not serve the namespace",
    pools: [GUARD],
    becomes: subnet('10.0.0.0/24', IN_LAN),
    refused: ['rights'],
    text: ['spec.config.ipam.addressSpace "lan" is an address space of pools that do not serve namespace vms'],
  },
  {
    name: "more addresses in an address space whose administrator's pool does not serve the namespace",
    pools: [GUARD],
    was: subnet('10.0.0.0/24', IN_LAN),
    becomes: subnet('10.0.0.0/23', IN_LAN),
    refused: ['rights'],
  },
  {
    name: 'another change of a NAD in such an address space, with a warning',
    pools: [GUARD],
    was: subnet('10.0.0.0/24', IN_LAN),
    becomes: subnet('10.0.0.0/24', { ...IN_LAN, cooldownSeconds: 60 }),
    warnings: 2,
    text: ['do not serve namespace vms'],
  },
  { name: 'a sticky time of years', becomes: subnet('10.0.0.0/24', FOREVER), refused: ['rights'], text: ['168h'] },
  {
    name: 'another change of a NAD that has a sticky time of years, with a warning',
    was: subnet('10.0.0.0/24', FOREVER),
    becomes: subnet('10.0.0.0/24', { ...FOREVER, cooldownSeconds: 60 }),
    warnings: 1,
    text: ['stickyMAC.ttl is "9000h"'],
  },
  {
    name: 'published capacity in a namespace that may not publish it',
    becomes: subnet('10.0.0.0/24', { publishCapacity: true }),
    refused: ['rights'],
    text: ['spec.config.ipam.publishCapacity', '--capacity-namespaces'],
  },
];

describe('the review of a NAD', () => {
  for (const { name, was, becomes, born = 1, refused = [], text = [], warnings = 0, ...seen } of CASES) {
    it(`${refused.length > 0 ? 'refuses' : 'allows'} ${name}`, () => {
      const given = {
        nad: nad('vms/n', becomes, born),
        oldNad: was === undefined ? undefined : nad('vms/n', was, born),
      };
      const result = runAtOnce(reviewNad(given, validationViewOf(seen)));
      expect(result.refusals.map(({ check }) => check)).to.deep.equal(refused);
      expect(result.warnings).to.have.length(warnings);
      const words = [...result.refusals.map(({ message }) => message), ...result.warnings].join('\n');
      for (const expected of text) expect(words).to.include(expected);
    });
  }
});
