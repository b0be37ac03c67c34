import { expect } from 'chai';
import type { AddressPool } from '../../api/address-pool.js';
import type { ParsedNad } from '../../cluster/transforms.js';
import { adminPool, cacheOf, claimOf, holdfastConfig, nad } from '../../test/pool-objects.js';
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
  { name: "an admin's pool", pools: [adminPool('p')], expect: 'served by p' },
  { name: 'the derived pool', pools: [derived()], nads: [BLUE_WITH_SUBNETS], expect: 'served by blue.vms' },
  {
    name: "an admin's pool before the derived one",
    pools: [derived(), adminPool('p', { born: 9 })],
    expect: 'served by p',
  },
  { name: 'its pool, though its status has no ips', pools: [derived()], claim: ODD, expect: 'served by blue.vms' },
  {
    name: "the derived pool where the admin's is for other namespaces",
    pools: [derived(), adminPool('p', { namespaces: ['others'] })],
    expect: 'served by blue.vms',
  },
  {
    name: "an admin's pool that lists the namespace",
    pools: [derived(), adminPool('p', { namespaces: ['others', 'vms'] })],
    expect: 'served by p',
  },
  {
    name: 'the older of two pools of an admin, by name where they are as old',
    pools: [adminPool('a', { born: 3 }), adminPool('c', { born: 2 }), adminPool('b', { born: 2 })],
    expect: 'served by b',
  },
  {
    name: 'nobody where its only pool is in conflict',
    pools: [adminPool('a', { namespaces: ['x'] }), adminPool('b', { namespaces: ['x', 'vms'], born: 2 })],
    expect:
      /^unserved: AddressPool b serves no workload: the older AddressPool a serves the same users of network blue; delete one/,
  },
  {
    name: 'a younger pool for namespaces of its own',
    pools: [adminPool('a', { namespaces: ['x'] }), adminPool('b', { namespaces: ['vms'], born: 2 })],
    expect: 'served by b',
  },
  {
    name: 'nobody where the pool is invalid, though a derived one is there',
    pools: [derived(), adminPool('p', { cidr: '10.0.0.1/24' })],
    expect: /^unserved: AddressPool p is invalid: spec\.subnets\[0\]\.cidr: "10\.0\.0\.1\/24"/,
  },
  {
    name: 'the derived pool where the invalid one is for other namespaces',
    pools: [derived(), adminPool('p', { cidr: '10.0.0.1/24', namespaces: ['x'] })],
    expect: 'served by blue.vms',
  },
  {
    name: 'the younger pool where the older is invalid',
    pools: [adminPool('a', { cidr: '10.0.0.1/24' }), adminPool('b', { born: 2 })],
    expect: 'served by b',
  },
  {
    name: 'the younger pool where the older is being deleted',
    pools: [adminPool('a', { deleting: true }), adminPool('b', { born: 2 })],
    expect: 'served by b',
  },
  {
    name: "the derived pool where the admin's is being deleted",
    pools: [derived(), adminPool('p', { deleting: true })],
    expect: 'served by blue.vms',
  },
  {
    name: 'nobody where the only pool is being deleted',
    pools: [adminPool('p', { deleting: true })],
    expect: 'unserved: AddressPool p is being deleted',
  },
  {
    name: 'nobody where there is no pool',
    expect:
      /^unserved: no AddressPool serves network blue for namespace vms: create one, or add subnets to the ipam object of the NAD$/,
  },
  {
    name: 'nobody yet where the NAD describes a pool that is not there',
    nads: [nad('vms/blue', holdfastConfig({ subnets: [{ cidr: '10.0.0.0/24' }] }))],
    expect: 'unserved: no AddressPool serves network blue for namespace vms yet: see the events of its NAD',
  },
  {
    name: 'nobody where all pools are for other networks',
    pools: [adminPool('p', { network: 'red' })],
    expect: /^unserved: no/,
  },
  {
    name: 'nobody where the NAD is invalid and there is no pool yet',
    nads: [nad('vms/blue', holdfastConfig({ subnet: '10.0.0.0/24' }))],
    expect: /^unserved: NAD vms\/blue cannot be used: spec\.config\.ipam\.subnet is unknown/,
  },
  {
    name: 'its pool, though the NAD became invalid',
    pools: [derived()],
    nads: [nad('vms/blue', holdfastConfig({ subnet: '10.0.0.0/24' }))],
    expect: 'served by blue.vms',
  },
  {
    name: 'somebody else: another IPAM in a plugin of a list',
    pools: [adminPool('p')],
    nads: [nad('vms/blue', { name: 'blue', plugins: [{ type: 'bridge', ipam: HOST_LOCAL }] })],
    expect: 'foreign: NAD vms/blue delegates IPAM to host-local',
  },
  {
    name: 'nobody at all: the NAD has no IPAM',
    pools: [adminPool('p')],
    nads: [nad('vms/blue', { name: 'blue', type: 'bridge' })],
    expect: 'foreign: NAD vms/blue has no IPAM',
  },
  {
    name: 'Holdfast, in a plugin of a list',
    pools: [adminPool('p')],
    nads: [nad('vms/blue', { name: 'blue', plugins: [{ type: 'bridge', ipam: { type: 'holdfast' } }] })],
    expect: 'served by p',
  },
  { name: 'its pool, though the NAD is gone', pools: [derived()], nads: [], expect: 'served by blue.vms' },
  {
    name: 'nobody for now where no NAD is seen, for the API server does not know them',
    pools: [adminPool('p')],
    nads: [],
    areNetworksServed: false,
    expect: 'unserved for now: the API server does not serve NetworkAttachmentDefinitions: install their CRD',
  },
  {
    name: 'somebody else: the NAD is gone, and there is no pool',
    nads: [],
    expect: 'foreign: NAD vms/blue does not exist, and no AddressPool serves network blue',
  },
  {
    name: 'its pool, though the NAD is for another network now',
    pools: [derived()],
    nads: [nad('vms/blue', { name: 'red', type: 'bridge', ipam: HOST_LOCAL })],
    expect: 'served by blue.vms',
  },
  {
    name: 'somebody else: the NAD is for another network now, and there is no pool',
    nads: [nad('vms/blue', holdfastConfig({}, 'red'))],
    expect: /^foreign: NAD vms\/blue is for network red now, and no AddressPool/,
  },
  {
    name: 'its pool, though the NAD cannot be read',
    pools: [derived()],
    nads: [nad('vms/blue', '{')],
    expect: 'served by blue.vms',
  },
  {
    name: 'somebody else: the NAD cannot be read, and there is no pool',
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
    name: "an admin's pool by the claim's namespace, not the NAD's",
    pools: [adminPool('p', { namespaces: ['vms'] })],
    nads: [nad('shared/blue', holdfastConfig())],
    claim: claimOf('vms/c', 'shared/blue'),
    expect: 'served by p',
  },
  {
    name: "the pool of a claim of others, by its namespace's NAD",
    pools: [adminPool('p')],
    claim: claimOf('vms/c'),
    expect: 'served by p',
  },
  {
    name: 'the pool of a claim of others, by any NAD of the network that delegates to Holdfast',
    pools: [adminPool('p')],
    nads: [nad('vms/old', { name: 'blue', type: 'bridge', ipam: HOST_LOCAL }), nad('vms/new', holdfastConfig(), 2)],
    claim: claimOf('vms/c'),
    expect: 'served by p',
  },
  {
    name: 'somebody else: a claim of others on a network of others',
    pools: [adminPool('p')],
    nads: [nad('vms/n', { name: 'blue', type: 'ovn-k8s-cni-overlay' })],
    claim: claimOf('vms/c'),
    expect: 'foreign: NAD vms/n has no IPAM',
  },
  {
    name: 'somebody else: a claim of others whose namespace has no NAD of the network',
    nads: [nad('shared/blue', holdfastConfig())],
    claim: claimOf('vms/c'),
    expect: 'foreign: no NAD in namespace vms is for network blue, and no AddressPool serves network blue',
  },
];

describe('a claim is served by', () => {
  for (const { name, pools = [], nads = [BLUE], areNetworksServed, ...row } of rows) {
    const { claim = claimOf('vms/c', 'vms/blue'), expect: expected } = row;
    it(name, () => {
      const found = summary(directoryOf(pools, nads, areNetworksServed).directory.resolve(claim));
      if (typeof expected === 'string') expect(found).to.equal(expected);
      else expect(found).to.match(expected);
    });
  }
});

describe('the directory of pools', () => {
  /** What `onChange` tells of what is done, once the change is settled. */
  async function told({ directory }: ReturnType<typeof directoryOf>, act: () => void): Promise<string[]> {
    const networks: string[] = [];
    directory.resolve(claimOf('vms/c'));
    directory.onChange((changed) => networks.push(...changed));
    act();
    await Promise.resolve();
    return networks.sort();
  }

  it('tells of the networks whose pools or NADs changed, and of no other', async () => {
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

  it('tells of both networks of a NAD that moved, and of one that is gone', async () => {
    const world = directoryOf([], [BLUE, nad('vms/x', holdfastConfig({}, 'green'))]);
    const networks = await told(world, () => {
      world.networks.set(nad('vms/blue', holdfastConfig({}, 'red')));
      world.networks.delete('vms/x');
      world.directory.changed();
    });
    expect(networks).to.deep.equal(['blue', 'green', 'red']);
  });

  it("passes over a pool's status, and keeps the same Pool", async () => {
    const before = adminPool('p');
    const world = directoryOf([before], [BLUE]);
    const pool = world.directory.pool('p');
    const object = { ...before, metadata: { ...before.metadata, resourceVersion: '2' }, status: { free: 1 } };
    const networks = await told(world, () => {
      world.pools.set(object as AddressPool);
      world.directory.changed({ type: 'changed', before, object });
      world.directory.changed();
    });
    expect(networks).to.deep.equal([]);
    expect(world.directory.pool('p')).to.equal(pool);
  });

  it('answers with what is in the caches at once', () => {
    const world = directoryOf([], [BLUE]);
    expect(summary(world.directory.resolve(claimOf('vms/c', 'vms/blue')))).to.match(/^unserved/);
    world.pools.set(adminPool('p'));
    world.directory.changed();
    expect(summary(world.directory.resolve(claimOf('vms/c', 'vms/blue')))).to.equal('served by p');
  });

  it('knows what a pool that serves nobody may lease, for those who have leases of it', () => {
    const { directory } = directoryOf(
      [adminPool('a'), adminPool('b', { born: 2 }), adminPool('c', { deleting: true })],
      [],
    );
    expect(directory.stateOf('b')).to.include({ kind: 'conflict', with: 'a' });
    expect(directory.pool('b')?.name).to.equal('b');
    expect(directory.stateOf('c')?.kind).to.equal('closing');
    expect(directory.pool('c')?.name).to.equal('c');
    expect(directory.stateOf('d')).to.equal(undefined);
  });
});
