import { expect } from 'chai';
import { runAtOnce } from '../../kube/run-in-slices.js';
import { adminPool, holdfastConfig, nad } from '../../test/objects/pool-objects.js';
import { type ValidatedObjects, poolLeaseOf, validationViewOf } from './testing/validation-view.js';
import { reviewNad } from './nad-review.js';
import type { ReviewCheck } from './review.js';

/** Everything that a tenant must not learn has this text in its name, or is an address of 10.77.0.0/16 with this ending. */
const SECRET = /secret|10\.77\.\d+\.(66|129)/;
const WIDE = { subnets: [{ cidr: '10.77.0.0/16' }] };
const FOREIGN_SUBNET = {
  subnets: [{ cidr: '10.77.0.0/16', ranges: ['10.77.5.66-10.77.5.129'], gateway: '10.77.9.66' }],
};
const OWNER = { kind: 'IPAMClaim', namespace: 'secret-team', name: 'vm.data', uid: 'secret-uid' } as const;
const onBridge = (network: string) => ({ ...holdfastConfig(WIDE, network), bridge: 'br0' });

interface Case extends ValidatedObjects {
  was?: object;
  becomes?: object;
  refused?: ReviewCheck;
  warnings?: number;
}

const ofAdmin = (name: string, more: object = {}) =>
  adminPool(name, { ...FOREIGN_SUBNET, namespaces: ['secret-team'], ...more });
const ofTenant = (more: object = {}) =>
  adminPool('blue.secret-team', {
    ...FOREIGN_SUBNET,
    nadNamespace: 'secret-team',
    namespaces: ['secret-team'],
    ...more,
  });
const IN_LAN = { ...WIDE, addressSpace: 'lan' };
const OWN_POOL = adminPool('blue.vms', { ...WIDE, nadNamespace: 'vms', namespaces: ['vms'] });

const CASES: Record<string, Case> = {
  "an administrator's pool of its network": { pools: [ofAdmin('secret')], refused: 'rights' },
  'a pool of another tenant': { pools: [ofTenant()], refused: 'rights' },
  "a named space of an administrator's pool": {
    pools: [ofAdmin('secret', { network: 'secret', addressSpace: 'lan' })],
    becomes: holdfastConfig(IN_LAN),
    refused: 'rights',
  },
  'a named space in which one pool serves the namespace': {
    pools: [
      adminPool('open', { network: 'open', addressSpace: 'lan', namespaces: ['vms'], cidr: '10.1.0.0/24' }),
      ofAdmin('secret', { network: 'secret', addressSpace: 'lan' }),
    ],
    becomes: holdfastConfig(IN_LAN),
    refused: 'rights',
  },
  'such addresses, which it would give to more namespaces than before': {
    pools: [ofAdmin('secret')],
    was: holdfastConfig(WIDE),
    becomes: holdfastConfig({ ...WIDE, namespaces: ['b'] }),
    refused: 'rights',
  },
  "other addresses than those of an administrator's pool": {
    pools: [ofAdmin('secret')],
    becomes: holdfastConfig({ subnets: [{ cidr: '10.1.0.0/24' }] }),
  },
  'equal subnets as in a pool of another tenant': {
    pools: [ofTenant()],
    becomes: holdfastConfig(FOREIGN_SUBNET),
    warnings: 1,
  },
  'equal subnets while the administrator enforces ownership': {
    pools: [ofTenant()],
    enforceAddressOwnership: true,
    becomes: holdfastConfig(FOREIGN_SUBNET),
    refused: 'rights',
  },
  'addresses that the NAD has had without permission': {
    pools: [ofAdmin('secret'), ofTenant()],
    was: holdfastConfig(WIDE),
    becomes: holdfastConfig({ ...WIDE, cooldownSeconds: 600 }),
    warnings: 2,
  },
  'a pool of another tenant that serves all namespaces': { pools: [ofTenant({ namespaces: undefined })], warnings: 1 },
  "an administrator's pool of the same segment": {
    pools: [ofAdmin('secret', { network: 'secret' })],
    nads: [nad('secret-team/secret', { ...holdfastConfig({}, 'secret'), bridge: 'br0' })],
    becomes: onBridge('blue'),
    warnings: 1,
  },
  "another tenant's pool of the same segment": {
    pools: [adminPool('secret.secret-team', { ...FOREIGN_SUBNET, network: 'secret', nadNamespace: 'secret-team' })],
    nads: [nad('secret-team/secret', onBridge('secret'))],
    becomes: onBridge('blue'),
    warnings: 1,
  },
  'its own pool with leases of other namespaces': {
    pools: [OWN_POOL],
    leases: { 'blue.vms': [poolLeaseOf('10.77.1.1', { owner: OWNER })] },
    becomes: holdfastConfig({ subnets: [{ cidr: '10.77.128.0/17' }] }),
    refused: 'shrink',
  },
  'its own pool with such leases in another address space': {
    pools: [OWN_POOL],
    leases: { 'blue.vms': [poolLeaseOf('10.77.1.1', { owner: OWNER })] },
    becomes: holdfastConfig({ ...WIDE, addressSpace: 'lab' }),
    refused: 'address-space',
  },
  'another NAD of its network': {
    pools: [ofTenant({ cidr: '10.1.0.0/24', subnets: [{ cidr: '10.1.0.0/24' }] })],
    nads: [
      nad('vms/older', holdfastConfig({ subnets: [{ cidr: '10.2.0.0/24' }] }), 1),
      nad('secret-team/blue', onBridge('blue')),
    ],
    refused: 'disagreement',
  },
};

describe('the review of a NAD whose addresses or segment concern', () => {
  for (const [name, { was, becomes = holdfastConfig(WIDE), refused, warnings = 0, ...seen }] of Object.entries(CASES)) {
    it(`${name}: it names neither pools, addresses nor owners of others`, () => {
      const oldNad = was && nad('vms/n', was, 5);
      const result = runAtOnce(reviewNad({ nad: nad('vms/n', becomes, 5), oldNad }, validationViewOf(seen)));
      expect(result.refusals.map(({ check }) => check)).to.deep.equal(refused === undefined ? [] : [refused]);
      expect(result.warnings).to.have.length(warnings);
      for (const message of [...result.refusals.map((each) => each.message), ...result.warnings])
        expect(message).to.not.match(SECRET);
    });
  }
});
