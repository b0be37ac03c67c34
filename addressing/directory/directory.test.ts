import { expect } from 'chai';
import type { AddressPool } from '../../api/address-pool.js';
import type { ParsedNad } from '../../cluster/transforms.js';
import { adminPool, cacheOf, claimOf, holdfastConfig, nad } from '../../test/objects/pool-objects.js';
import { PoolDirectory } from './directory.js';

const SUBNETS = { subnets: [{ cidr: '10.9.0.0/24' }] };
const BLUE = nad('vms/blue', holdfastConfig());
const BLUE_WITH_SUBNETS = nad('vms/blue', holdfastConfig(SUBNETS));
const HOST_LOCAL = { type: 'host-local' };

function directoryOf(pools: readonly AddressPool[], nads: readonly ParsedNad[], areNetworksServed = true) {
  const listers = { pools: cacheOf(pools), networks: cacheOf(nads), areNetworksServed: () => areNetworksServed };
  return { ...listers, directory: new PoolDirectory(listers) };
}

/** `served by <pool>`, or kind and message. */
function summary(resolution: ReturnType<PoolDirectory['resolve']>): string {
  if (resolution.kind === 'served') return `served by ${resolution.pool.name}`;
  const uncertain = resolution.kind === 'unserved' && resolution.isUncertain ? ' for now' : '';
  return `${resolution.kind}${uncertain}: ${resolution.message}`;
}

const ODD = { ...claimOf('vms/c', 'vms/blue'), status: { conditions: [] } as never };
const derived = (born = 1) => adminPool('blue.vms', { nadNamespace: 'vms', born });

interface Row {
  name: string;
  pools?: AddressPool[];
  nads?: ParsedNad[];
  claim?: ReturnType<typeof claimOf>;
  areNetworksServed?: boolean;
  expect: string | RegExp;
}

const rows: Row[] = [
  { name: "an administrator's pool", pools: [adminPool('p')], expect: 'served by p' },
  { name: 'the derived pool', pools: [derived()], nads: [BLUE_WITH_SUBNETS], expect: 'served by blue.vms' },
  {
    name: "an administrator's pool before the derived one",
    pools: [derived(), adminPool('p', { born: 9 })],
    expect: 'served by p',
  },
  { name: 'its pool even if its status has no ips', pools: [derived()], claim: ODD, expect: 'served by blue.vms' },
  {
    name: "the derived pool if the administrator's serves other namespaces",
    pools: [derived(), adminPool('p', { namespaces: ['others'] })],
    expect: 'served by blue.vms',
  },
  {
    name: "an administrator's pool that lists the namespace",
    pools: [derived(), adminPool('p', { namespaces: ['others', 'vms'] })],
    expect: 'served by p',
  },
  {
    name: 'the older of two pools of an administrator, or the first by name if they have the same age',
    pools: [adminPool('a', { born: 3 }), adminPool('c', { born: 2 }), adminPool('b', { born: 2 })],
    expect: 'served by b',
  },
  {
    name: 'no pool if its only pool is in conflict',
    pools: [adminPool('a', { namespaces: ['x'] }), adminPool('b', { namespaces: ['x', 'vms'], born: 2 })],
    expect:
      /^unserved: AddressPool b serves no workload: the older AddressPool a serves the same users of network blue; delete one/,
  },
  {
    name: 'a younger pool with namespaces of its own',
    pools: [adminPool('a', { namespaces: ['x'] }), adminPool('b', { namespaces: ['vms'], born: 2 })],
    expect: 'served by b',
  },
  {
    name: 'no pool if the administrator’s is invalid, even if there is a derived one',
    pools: [derived(), adminPool('p', { cidr: '10.0.0.1/24' })],
    expect: /^unserved: AddressPool p is invalid: spec\.subnets\[0\]\.cidr: "10\.0\.0\.1\/24"/,
  },
  {
    name: 'the derived pool if the invalid one serves other namespaces',
    pools: [derived(), adminPool('p', { cidr: '10.0.0.1/24', namespaces: ['x'] })],
    expect: 'served by blue.vms',
  },
  {
    name: 'the younger pool if the older one is invalid',
    pools: [adminPool('a', { cidr: '10.0.0.1/24' }), adminPool('b', { born: 2 })],
    expect: 'served by b',
  },
  {
    name: 'the younger pool if the older one is being deleted',
    pools: [adminPool('a', { deleting: true }), adminPool('b', { born: 2 })],
    expect: 'served by b',
  },
  {
    name: "the derived pool if the administrator's is being deleted",
    pools: [derived(), adminPool('p', { deleting: true })],
    expect: 'served by blue.vms',
  },
  {
    name: 'no pool if its only pool is being deleted',
    pools: [adminPool('p', { deleting: true })],
    expect: 'unserved: AddressPool p is being deleted',
  },
  {
    name: 'no pool if there is none',
    expect:
      /^unserved: no AddressPool serves network blue for namespace vms: create one, or add subnets to the ipam object of the NAD$/,
  },
  {
    name: 'no pool yet if the NAD describes one that does not exist',
    nads: [nad('vms/blue', holdfastConfig({ subnets: [{ cidr: '10.0.0.0/24' }] }))],
    expect: 'unserved: no AddressPool serves network blue for namespace vms yet: see the events of its NAD',
  },
  {
    name: 'no pool yet if the NAD describes one by the keys of whereabouts',
    nads: [nad('vms/blue', holdfastConfig({ range: '10.0.0.0/24' }))],
    expect: /vms yet: see the events of its NAD$/,
  },
  { name: 'no pool if all serve other networks', pools: [adminPool('p', { network: 'red' })], expect: /^unserved: no/ },
  {
    name: 'no pool if the NAD is invalid and none exists yet',
    nads: [nad('vms/blue', holdfastConfig({ subnet: '10.0.0.0/24' }))],
    expect: /^unserved: NAD vms\/blue cannot be used: spec\.config\.ipam\.subnet is unknown/,
  },
  {
    name: 'its pool even if the NAD became invalid',
    pools: [derived()],
    nads: [nad('vms/blue', holdfastConfig({ subnet: '10.0.0.0/24' }))],
    expect: 'served by blue.vms',
  },
  {
    name: 'another IPAM in a plugin list',
    pools: [adminPool('p')],
    nads: [nad('vms/blue', { name: 'blue', plugins: [{ type: 'bridge', ipam: HOST_LOCAL }] })],
    expect: 'foreign: NAD vms/blue delegates IPAM to host-local',
  },
  {
    name: 'no IPAM if the NAD has none',
    pools: [adminPool('p')],
    nads: [nad('vms/blue', { name: 'blue', type: 'bridge' })],
    expect: 'foreign: NAD vms/blue has no IPAM, and AddressPool p has no spec.guest',
  },
  {
    name: 'Holdfast in a plugin list',
    pools: [adminPool('p')],
    nads: [nad('vms/blue', { name: 'blue', plugins: [{ type: 'bridge', ipam: { type: 'holdfast' } }] })],
    expect: 'served by p',
  },
  { name: 'its pool even if the NAD does not exist', pools: [derived()], nads: [], expect: 'served by blue.vms' },
  {
    name: 'no pool for now if the API server does not serve NADs',
    pools: [adminPool('p')],
    nads: [],
    areNetworksServed: false,
    expect: 'unserved for now: the API server does not serve NetworkAttachmentDefinitions: install their CRD',
  },
  {
    name: 'another IPAM if neither NAD nor pool exists',
    nads: [],
    expect: 'foreign: NAD vms/blue does not exist, and no AddressPool serves network blue',
  },
  {
    name: 'its pool even if the NAD is for another network now',
    pools: [derived()],
    nads: [nad('vms/blue', { name: 'red', type: 'bridge', ipam: HOST_LOCAL })],
    expect: 'served by blue.vms',
  },
  {
    name: 'another IPAM if the NAD is for another network now and there is no pool',
    nads: [nad('vms/blue', holdfastConfig({}, 'red'))],
    expect: /^foreign: NAD vms\/blue is for network red now, and no AddressPool/,
  },
  {
    name: 'its pool even if the NAD is invalid',
    pools: [derived()],
    nads: [nad('vms/blue', '{')],
    expect: 'served by blue.vms',
  },
  {
    name: 'another IPAM if the NAD is invalid and there is no pool',
    nads: [nad('vms/blue', '{')],
    expect: /^foreign: NAD vms\/blue cannot be used: spec\.config is not JSON/,
  },
  {
    name: "the pool of the NAD's namespace, not of the claim's",
    pools: [derived(), adminPool('blue.shared', { nadNamespace: 'shared' })],
    nads: [nad('shared/blue', holdfastConfig(SUBNETS))],
    claim: claimOf('vms/c', 'shared/blue'),
    expect: 'served by blue.shared',
  },
  {
    name: "an administrator's pool by the claim's namespace, not the NAD's",
    pools: [adminPool('p', { namespaces: ['vms'] })],
    nads: [nad('shared/blue', holdfastConfig())],
    claim: claimOf('vms/c', 'shared/blue'),
    expect: 'served by p',
  },
  {
    name: "the pool of its namespace's NAD if another component created the claim",
    pools: [adminPool('p')],
    claim: claimOf('vms/c'),
    expect: 'served by p',
  },
  {
    name: 'the pool of any NAD that delegates to Holdfast if another component created the claim',
    pools: [adminPool('p')],
    nads: [nad('vms/old', { name: 'blue', type: 'bridge', ipam: HOST_LOCAL }), nad('vms/new', holdfastConfig(), 2)],
    claim: claimOf('vms/c'),
    expect: 'served by p',
  },
  {
    name: 'another IPAM if the network of a foreign claim has one',
    pools: [adminPool('p')],
    nads: [nad('vms/n', { name: 'blue', type: 'ovn-k8s-cni-overlay' })],
    claim: claimOf('vms/c'),
    expect: /^foreign: NAD vms\/n has no IPAM, and its plugin is "ovn-k8s-cni-overlay", not one of bridge/,
  },
  {
    name: 'another IPAM if the namespace of a foreign claim has no NAD of the network',
    nads: [nad('shared/blue', holdfastConfig())],
    claim: claimOf('vms/c'),
    expect: 'foreign: no NAD in namespace vms is for network blue, and no AddressPool serves network blue',
  },
];

describe('a claim', () => {
  for (const { name, pools = [], nads = [BLUE], areNetworksServed, ...row } of rows) {
    const { claim = claimOf('vms/c', 'vms/blue'), expect: expected } = row;
    it(`is served by ${name}`, () => {
      const found = summary(directoryOf(pools, nads, areNetworksServed).directory.resolve(claim));
      if (typeof expected === 'string') expect(found).to.equal(expected);
      else expect(found).to.match(expected);
    });
  }
});

describe('PoolDirectory', () => {
  /** What `onChange` tells of what is done, once the change is settled. */
  async function told({ directory }: ReturnType<typeof directoryOf>, act: () => void): Promise<string[]> {
    const networks: string[] = [];
    directory.resolve(claimOf('vms/c'));
    directory.onChange((changed) => networks.push(...changed.keys()));
    act();
    await Promise.resolve();
    return networks.sort();
  }

  it('reports only the networks whose pools or NADs changed', async () => {
    const world = directoryOf([adminPool('p'), adminPool('r', { network: 'red' })], [BLUE]);
    const networks = await told(world, () => {
      world.pools.set(adminPool('p', { cidr: '10.1.0.0/24' }));
      world.directory.changed();
      world.networks.set(nad('vms/green', holdfastConfig({}, 'green')));
      world.directory.changed();
    });
    expect(networks).to.deep.equal(['blue', 'green']);
    expect(summary(world.directory.resolve(claimOf('vms/c')))).to.equal('served by p');
  });

  it('reports both networks of a NAD that moved, and a network that is gone', async () => {
    const world = directoryOf([], [BLUE, nad('vms/x', holdfastConfig({}, 'green'))]);
    const networks = await told(world, () => {
      world.networks.set(nad('vms/blue', holdfastConfig({}, 'red')));
      world.networks.delete('vms/x');
      world.directory.changed();
    });
    expect(networks).to.deep.equal(['blue', 'green', 'red']);
  });

  it("ignores changes of a pool's status, and keeps the same Pool", async () => {
    const before = adminPool('p');
    const world = directoryOf([before], [BLUE]);
    const pool = world.directory.pool('p');
    const object = { ...before, metadata: { ...before.metadata, resourceVersion: '2' }, status: { free: 1 } };
    const networks = await told(world, () => {
      world.pools.set(object as AddressPool);
      world.directory.changed();
    });
    expect(networks).to.deep.equal([]);
    expect(world.directory.pool('p')).to.equal(pool);
  });

  it('answers from the current caches at once', () => {
    const world = directoryOf([], [BLUE]);
    expect(summary(world.directory.resolve(claimOf('vms/c', 'vms/blue')))).to.match(/^unserved/);
    world.pools.set(adminPool('p'));
    world.directory.changed();
    expect(summary(world.directory.resolve(claimOf('vms/c', 'vms/blue')))).to.equal('served by p');
  });

  it('knows the addresses of a pool that serves no workload', () => {
    const pools = [adminPool('a'), adminPool('b', { born: 2 }), adminPool('c', { deleting: true })];
    const { directory } = directoryOf(pools, []);
    expect(directory.stateOf('b')).to.include({ kind: 'conflict', with: 'a' });
    expect(directory.pool('b')?.name).to.equal('b');
    expect(directory.stateOf('c')?.kind).to.equal('closing');
    expect(directory.pool('c')?.name).to.equal('c');
    expect(directory.stateOf('d')).to.equal(undefined);
  });
});
