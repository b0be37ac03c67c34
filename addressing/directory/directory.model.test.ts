import { expect } from 'chai';
import fc from 'fast-check';
import { type AddressPool, nadNamespaceOf } from '../../api/address-pool.js';
import { objectKey } from '../../api/meta.js';
import { type ParsedNad, transformNad } from '../../cluster/transforms.js';
import { Cache } from '../../kube/informers/cache.js';
import { vmReference } from '../../test/objects/workload-objects.js';
import { adminPool, claimOf, holdfastConfig, nadDefinition } from '../../test/objects/pool-objects.js';
import { parseAddress } from '../address/address.js';
import { NETWORK_INDEXES, affectedClaims } from './affected.js';
import { type NetworkChanges, PoolDirectory } from './directory.js';
import { TestInformer } from '../../kube/testing/test-informer.js';

const NAMESPACES = ['vms', 'lab'];
const NETWORKS = ['blue', 'red'];
const SPACES = ['blue', 'red', 'lan'];

const network = fc.constantFrom(...NETWORKS);
const namespace = fc.constantFrom(...NAMESPACES);
const born = fc.integer({ min: 1, max: 3 });
const poolName = fc.constantFrom('p', 'q', 'r', 's');
const cidr = fc.constantFrom('10.0.0.0/24', '10.0.0.0/25', '10.1.0.0/24', 'invalid');
const addressSpace = fc.option(fc.constant('lan'), { nil: undefined });

const step = fc.oneof(
  fc.record({
    do: fc.constant('putPool' as const),
    name: poolName,
    given: fc.record(
      { network, cidr, born, deleting: fc.boolean(), nadNamespace: namespace, namespaces: fc.subarray(NAMESPACES) },
      { requiredKeys: ['network', 'cidr', 'born'] },
    ),
    addressSpace,
  }),
  fc.record({ do: fc.constant('removePool' as const), name: poolName }),
  fc.record({ do: fc.constant('touchPool' as const), name: poolName }),
  fc.record({
    do: fc.constant('putNad' as const),
    key: fc.constantFrom('vms/a', 'vms/b', 'lab/a'),
    config: fc.oneof(
      fc
        .tuple(network, addressSpace)
        .map(([name, space]) => holdfastConfig({ ...(space && { addressSpace: space }) }, name)),
      network.map((name) => ({ name, type: 'bridge', bridge: 'br0' })),
      fc.constant('{'),
    ),
    born,
  }),
  fc.record({ do: fc.constant('removeNad' as const), key: fc.constantFrom('vms/a', 'vms/b', 'lab/a') }),
  fc.record({ do: fc.constant('labelNad' as const), key: fc.constantFrom('vms/a', 'vms/b', 'lab/a') }),
  fc.record({ do: fc.constant('ask' as const) }),
);
type Step = typeof step extends fc.Arbitrary<infer S> ? S : never;

/** Claims that name a NAD, and claims that others created. All show an address, which proves nothing. */
const CLAIMS = NAMESPACES.flatMap((each) =>
  NETWORKS.flatMap((of) =>
    [undefined, 'vms/a', 'vms/b', 'lab/a'].map((nad) => {
      const { metadata, spec } = claimOf(`${each}/${of}-${nad?.replace('/', '.') ?? 'none'}`, nad, of);
      const owned = { ...metadata, ownerReferences: [vmReference('vm-uid')] };
      return { metadata: owned, spec, status: { ips: ['10.0.0.5/24'] } };
    }),
  ),
);

class World {
  readonly pools = new TestInformer<AddressPool>();
  readonly networks = new TestInformer<ParsedNad>();
  readonly directory: PoolDirectory;
  readonly told: NetworkChanges[] = [];
  readonly claims = new Cache(NETWORK_INDEXES);
  #version = 1;

  constructor() {
    for (const claim of CLAIMS) this.claims.set(claim);
    this.directory = new PoolDirectory({ pools: this.pools.cache, networks: this.networks.cache }, () => undefined);
    this.directory.follow({ pools: this.pools, networks: this.networks });
    this.directory.onChange((changes) => this.told.push(changes));
  }

  run(each: Step): void {
    switch (each.do) {
      case 'putPool': {
        const { network: of, ...given } = each.given;
        const space = each.addressSpace && { addressSpace: each.addressSpace };
        this.pools.set(this.#versioned(adminPool(each.name, { ...given, network: of, ...space })));
        break;
      }
      case 'removePool':
        this.pools.delete(each.name);
        break;
      case 'touchPool': {
        const pool = this.pools.cache.get(each.name);
        if (pool !== undefined) this.pools.set(this.#versioned(pool));
        break;
      }
      case 'putNad':
        this.networks.set(this.#versioned(transformNad(nadDefinition(each.key, each.config, each.born))));
        break;
      case 'removeNad':
        this.networks.delete(each.key);
        break;
      case 'labelNad': {
        const nad = this.networks.cache.get(each.key);
        if (nad !== undefined) this.networks.set(this.#versioned({ ...nad }));
        break;
      }
      case 'ask':
        this.directory.namespacesOf('blue');
        break;
    }
  }

  #versioned<T extends AddressPool | ParsedNad>(object: T): T {
    return { ...object, metadata: { ...object.metadata, resourceVersion: String(this.#version++) } };
  }
}

/** Everything that a directory answers. */
function answersOf(directory: PoolDirectory, claims: readonly ReturnType<typeof claimOf>[] = CLAIMS): unknown {
  const address = parseAddress('10.0.0.5');
  const names = (pools: Iterable<{ name: string }>) => [...pools].map(({ name }) => name).sort();
  return {
    resolutions: claims.map((claim) => summaryOf(directory, claim)),
    states: ['p', 'q', 'r', 's'].map((name) => [directory.stateOf(name)?.kind, directory.pool(name)?.name]),
    networks: NETWORKS.map((of) => [
      ...[directory.poolsOf(of).map(({ name }) => name), [...directory.namespacesOf(of)].sort()],
      NAMESPACES.map((each) => directory.nadsOf(each, of).map(objectKey)),
    ]),
    spaces: SPACES.map((space) => [
      [...directory.poolsContaining(space, address)].sort(),
      names(directory.poolsIn(space).map(({ pool }) => pool)),
      directory
        .networksIn(space)
        .map((each) => `${each.namespace}/${each.network}`)
        .sort(),
    ]),
    segments: [...directory.poolsBySegment].map(([segment, pools]) => [segment, names(pools)]).sort(),
  };
}

function summaryOf(directory: PoolDirectory, claim: ReturnType<typeof claimOf>): string {
  const found = directory.resolve(claim);
  return found.kind === 'served'
    ? `${found.pool.name} ${JSON.stringify(found.pool.subnets.length)}`
    : `${found.kind}: ${found.message}`;
}

describe('A pool directory that follows changes', () => {
  it('answers as one that reads everything anew, serves no other namespaces, and tells of each claim whose answer changes', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 25 }), (steps) => {
        const world = new World();
        const answers = new Map<string, string>();
        for (const each of steps) {
          world.told.length = 0;
          world.run(each);
          const fresh = new PoolDirectory({ pools: world.pools.cache, networks: world.networks.cache });
          expect(answersOf(world.directory)).to.deep.equal(answersOf(fresh));
          const affected = new Set(
            world.told.flatMap((changes) => affectedClaims(changes, world.claims)).map(objectKey),
          );
          for (const claim of CLAIMS) {
            const { kind, ...found } = world.directory.resolve(claim);
            if ('pool' in found)
              expect(found.pool.namespaces ?? new Set(NAMESPACES)).to.include(claim.metadata.namespace);
            const now = 'pool' in found ? JSON.stringify([kind, found.pool.name, found.pool.subnets.length]) : kind;
            const key = objectKey(claim);
            const before = answers.get(key);
            if (before !== undefined && before !== now)
              expect(affected.has(key), `${key}: ${before} → ${now}`).to.equal(true);
            answers.set(key, now);
          }
        }
      }),
    );
  });

  it('does not parse, evaluate or tell anything when labels of a NAD or the status of a pool change', () => {
    const world = new World();
    world.run({ do: 'putNad', key: 'vms/a', config: holdfastConfig(), born: 1 });
    world.run({
      do: 'putPool',
      name: 'p',
      given: { network: 'blue', cidr: '10.0.0.0/24', born: 1 },
      addressSpace: undefined,
    });
    const [pool] = world.directory.poolsOf('blue');
    world.told.length = 0;
    world.run({ do: 'labelNad', key: 'vms/a' });
    world.run({ do: 'touchPool', name: 'p' });
    expect(world.directory.poolsOf('blue')[0]).to.equal(pool);
    expect(world.told).to.deep.equal([]);
  });

  it('evaluates only the network that changes', () => {
    const world = new World();
    for (const of of NETWORKS) world.pools.set(adminPool(`pool-${of}`, { network: of }));
    const [red] = world.directory.poolsOf('red');
    world.run({ do: 'putNad', key: 'vms/a', config: holdfastConfig(), born: 1 });
    expect(world.directory.poolsOf('red')[0]).to.equal(red);
    expect([...(world.told.at(-1) ?? [])]).to.deep.equal([['blue', new Set(['vms'])]]);
  });

  it('reads no other NAD of the network when one changes, however many name it, in its namespace or in others', () => {
    const world = new World();
    const reads = new Map<string, number>();
    const put = (key: string, bridge: string) => {
      const parsed = transformNad(nadDefinition(key, { ...holdfastConfig(), bridge }));
      const read = { ...parsed, metadata: { ...parsed.metadata, resourceVersion: bridge } };
      for (const field of ['delegation', 'delivery', 'segment', 'metadata'] as const) {
        const value = read[field];
        const get = () => (reads.set(key, (reads.get(key) ?? 0) + 1), value);
        Object.defineProperty(read, field, { get, enumerable: true });
      }
      world.networks.set(read);
    };
    for (const key of ['vms/a', 'vms/b', 'lab/a', 'lab/b']) put(key, 'br0');
    world.directory.namespacesOf('blue');
    reads.clear();
    put('lab/b', 'br1');
    expect(world.directory.poolsOf('blue')).to.deep.equal([]);
    expect(world.told.at(-1)).to.deep.equal(new Map([['blue', new Set(['lab'])]]));
    expect([...reads.keys()]).to.deep.equal(['lab/b']);
  });

  it('tells a change of an administrator’s pool to all namespaces, and one of a derived pool to that of its NAD', () => {
    const world = new World();
    const derived = adminPool('blue.vms', { nadNamespace: 'vms', born: 2 });
    world.pools.set(derived);
    world.directory.pool('p');
    world.pools.set(adminPool('p', { cidr: '10.7.0.0/24', namespaces: ['lab'] }));
    world.directory.pool('p');
    expect(world.told.map((changes) => [...changes])).to.deep.equal([
      [['blue', new Set([nadNamespaceOf(derived)])]],
      [['blue', undefined]],
    ]);
  });
});
