import { expect } from 'chai';
import type { AddressPool } from '../../api/address-pool.js';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import { RESPONDERS_NAMESPACE } from '../../api/names.js';
import type { ParsedNad } from '../../cluster/transforms.js';
import { type PoolGiven, adminPool, cacheOf, claimOf, holdfastConfig, nad } from '../../test/objects/pool-objects.js';
import { PoolDirectory } from './directory.js';
import { type ResolutionTable, namespaceRefusal, resolve, userOfClaim } from './resolution.js';

const BRIDGE = { name: 'blue', type: 'bridge', bridge: 'br0' };
const LAYER2 = nad('vms/blue', BRIDGE);
const CNI = nad('vms/cni', { ...holdfastConfig(), bridge: 'br0' });
const OVN = nad('vms/blue', { name: 'blue', type: 'ovn-k8s-cni-overlay' });

const guestPool = (name: string, given: PoolGiven = {}) => adminPool(name, { guest: {}, ...given });
const derivedPool = adminPool('blue.vms', { nadNamespace: 'vms', guest: {} });
const withAddresses = (claim: IPAMClaim): IPAMClaim => ({ ...claim, status: { ips: ['10.0.0.5/24'] } });

function directoryOf(pools: readonly AddressPool[], nads: readonly ParsedNad[]) {
  const listers = { pools: cacheOf(pools), networks: cacheOf(nads) };
  return { ...listers, directory: new PoolDirectory(listers) };
}

function summary(resolution: ReturnType<PoolDirectory['resolve']>): string {
  return resolution.kind === 'served'
    ? `served by ${resolution.pool.name}`
    : `${resolution.kind}: ${resolution.message}`;
}

const CLAIM = claimOf('vms/c', 'vms/blue');

describe('a claim on a NAD without IPAM', () => {
  const cases: { name: string; pools?: AddressPool[]; nads?: ParsedNad[]; claim?: IPAMClaim; expect: string }[] = [
    { name: "served by an administrator's pool with spec.guest", pools: [guestPool('p')], expect: 'served by p' },
    {
      name: 'served by the pool with spec.guest, not by an older one without',
      pools: [adminPool('old', { namespaces: ['x', 'vms'] }), guestPool('p', { born: 2, namespaces: ['vms'] })],
      expect: 'unserved: AddressPool p serves no workload',
    },
    {
      name: 'left alone if the pool of its network has no spec.guest',
      pools: [adminPool('p')],
      expect: 'foreign: NAD vms/blue has no IPAM, and AddressPool p has no spec.guest',
    },
    {
      name: 'left alone if no pool serves its network',
      expect:
        'foreign: NAD vms/blue has no IPAM, and no AddressPool with spec.guest serves network blue for namespace vms',
    },
    {
      name: 'left alone if the pool with spec.guest serves other namespaces',
      pools: [guestPool('p', { namespaces: ['others'] })],
      expect:
        'foreign: NAD vms/blue has no IPAM, and no AddressPool with spec.guest serves network blue for namespace vms',
    },
    {
      name: 'not served by a derived pool, not even one with spec.guest',
      pools: [derivedPool],
      expect: 'foreign: NAD vms/blue has no IPAM, and no AddressPool with spec.guest',
    },
    {
      name: 'refused if the pool with spec.guest is invalid',
      pools: [guestPool('p', { guest: { mtu: 1 } })],
      expect: 'unserved: AddressPool p is invalid: spec.guest.mtu',
    },
    {
      name: 'still served by a pool whose spec.guest was removed while it has addresses',
      pools: [adminPool('p')],
      claim: withAddresses(CLAIM),
      expect: 'served by p',
    },
    {
      name: 'still served by the derived pool of its former NAD while it has addresses',
      pools: [adminPool('blue.vms', { nadNamespace: 'vms' })],
      claim: withAddresses(CLAIM),
      expect: 'served by blue.vms',
    },
    {
      name: 'left alone on OVN-Kubernetes, even with addresses and spec.guest',
      pools: [guestPool('p')],
      nads: [OVN],
      claim: withAddresses(CLAIM),
      expect: 'foreign: NAD vms/blue has no IPAM, and its plugin is "ovn-k8s-cni-overlay"',
    },
    {
      name: 'served if another component created it and the network has only such a NAD',
      pools: [guestPool('p')],
      claim: claimOf('vms/c'),
      expect: 'served by p',
    },
    {
      name: 'served with a NAD that delegates IPAM, too, by a pool without spec.guest if another component created it',
      pools: [adminPool('p')],
      nads: [LAYER2, CNI],
      claim: claimOf('vms/c'),
      expect: 'served by p',
    },
  ];
  for (const { name, pools = [], nads = [LAYER2], claim = CLAIM, expect: expected } of cases) {
    it(`is ${name}`, () => {
      const found = summary(directoryOf(pools, nads).directory.resolve(claim));
      expect(found.slice(0, expected.length)).to.equal(expected);
    });
  }

  const uncertain: { name: string; nads?: ParsedNad[]; claim: IPAMClaim; isUncertain: true | undefined }[] = [
    { name: 'has addresses, of a pool that is not known yet', claim: withAddresses(CLAIM), isUncertain: true },
    { name: 'has no addresses, so another DHCP server may be in charge', claim: CLAIM, isUncertain: undefined },
    { name: 'has addresses of OVN-Kubernetes', nads: [OVN], claim: withAddresses(CLAIM), isUncertain: undefined },
  ];
  for (const { name, nads = [LAYER2], claim, isUncertain } of uncertain) {
    it(`${isUncertain === true ? 'may be' : 'is not'} one of Holdfast if no pool serves it and it ${name}`, () => {
      const pools = [guestPool('p', { namespaces: ['others'] })];
      const found = directoryOf(pools, nads).directory.resolve(claim);
      expect(found).to.include({ kind: 'foreign' });
      expect('isUncertain' in found ? found.isUncertain : undefined).to.equal(isUncertain);
    });
  }

  it('gets addresses of the same pool as a pod on a NAD of the network that delegates IPAM', () => {
    const { directory } = directoryOf([guestPool('p')], [LAYER2, CNI]);
    const pod = { namespace: 'vms', network: 'blue', nad: 'vms/cni' };
    expect(summary(directory.resolveUser(pod))).to.equal('served by p');
    expect(summary(directory.resolve(CLAIM))).to.equal('served by p');
    expect(summary(directory.resolve(claimOf('vms/c', 'vms/cni')))).to.equal('served by p');
  });

  it('gets an address where a pod gets none and requests none', () => {
    const { directory } = directoryOf([guestPool('p')], [LAYER2]);
    const pod = { namespace: 'vms', network: 'blue', nad: 'vms/blue' };
    expect(summary(directory.resolveUser(pod))).to.equal('foreign: NAD vms/blue has no IPAM');
    expect(summary(directory.resolveUser({ ...pod, hasAddresses: true }))).to.equal(
      'foreign: NAD vms/blue has no IPAM',
    );
  });

  it('is resolved again when its NAD gets or loses an ipam object, or a NAD other options for guests', async () => {
    const { directory, networks } = directoryOf([guestPool('p')], [LAYER2]);
    const told: string[] = [];
    directory.resolve(CLAIM);
    directory.onChange((changed) => told.push(...changed.keys()));
    for (const config of [{ ...BRIDGE, ipam: { type: 'holdfast' } }, BRIDGE, { ...BRIDGE, mtu: 1400 }, OVN]) {
      networks.set(config === OVN ? OVN : nad('vms/blue', config));
      directory.changed();
      await Promise.resolve();
    }
    expect(told).to.deep.equal(['blue', 'blue', 'blue', 'blue']);
  });
});

describe('the claim of a responder', () => {
  const claim = claimOf(`${RESPONDERS_NAMESPACE}/server-0`);
  const attachment = nad(`${RESPONDERS_NAMESPACE}/blue`, BRIDGE);
  const dhcp = { attachment: 'blue', dhcp: {} };

  it('is served by the pool of the responder, which serves namespaces of tenants only', () => {
    const { directory } = directoryOf([guestPool('p', { guest: dhcp, namespaces: ['vms'] })], [attachment]);
    const resolution = directory.resolve(claim);
    expect(summary(resolution)).to.equal('served by p');
    expect(resolution.kind === 'served' && namespaceRefusal(claim, resolution.pool)).to.equal(undefined);
  });

  it('is not served by a pool without responders', () => {
    const { directory } = directoryOf([guestPool('p', { namespaces: ['vms'] })], [attachment]);
    expect(summary(directory.resolve(claim))).to.match(/^foreign: /);
  });
});

describe('the pools of a layer-2 segment', () => {
  it('are those with spec.guest for a NAD without IPAM, and never derived ones', () => {
    const pools = [guestPool('p'), adminPool('q', { network: 'red' }), derivedPool];
    const red = nad('vms/red', { ...BRIDGE, name: 'red' });
    const { directory } = directoryOf(pools, [LAYER2, red]);
    const names = [...(directory.poolsBySegment.get('bridge br0') ?? [])].map(({ name }) => name);
    expect(names).to.deep.equal(['p']);
  });
});

/** A cluster without pools and NADs. */
const EMPTY = {
  areNadsServed: () => true,
  nad: () => undefined,
  nadsOf: () => [],
  poolsOf: () => [],
  adminPools: () => [],
  derivedPools: () => [],
} as unknown as ResolutionTable;

describe('resolve', () => {
  it('returns a message that fits into a condition for a network name of any length', () => {
    const resolution = resolve({ namespace: 'tenant', network: 'n'.repeat(1_000_000) }, EMPTY);
    expect(resolution.kind).to.equal('foreign');
    expect('message' in resolution && resolution.message.length).to.be.below(1_024);
  });
});

describe('the pool of another namespace, from which a claim has addresses', () => {
  const claim = { ...claimOf('vms/c', 'shared/blue'), status: { ips: ['10.9.0.5/24'] } };
  const pool = { namespaces: ['shared'], state: { kind: 'served', pool: { name: 'blue.shared' } } };
  const table = { ...EMPTY, derivedPools: () => [pool] } as unknown as ResolutionTable;

  it('still serves the claim when it no longer serves the namespace', () => {
    expect(resolve({ ...userOfClaim(claim), keepsPool: true }, table).kind).to.equal('served');
  });

  it('does not serve a claim only because it shows addresses', () => {
    expect(resolve(userOfClaim(claim), table)).to.have.property('kind', 'foreign');
  });
});
