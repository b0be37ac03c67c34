import { expect } from 'chai';
import { ADDRESS_LEASES, ADDRESS_POOLS, PODS } from '../../kube/resources.js';
import { adminPool } from '../../test/objects/pool-objects.js';
import { leaseOf } from '../../test/objects/lease-objects.js';
import { StatusError, TransportError } from '../../kube/errors.js';
import { ProcessKilled } from '../testing/memory-cluster.js';
import {
  MigrationCluster,
  ipPool,
  livePod,
  makeLargeCluster,
  observedOf,
  whereaboutsNad,
} from '../testing/migration-world.js';
import { CommandError } from '../exit-code.js';
import { IP_POOLS } from './plan-types.js';
import { type MigrateOptions, migrateWhereabouts } from './migrate.js';

const DRY: MigrateOptions = { apply: false, namespace: 'kube-system', skipConflicts: false, output: 'table' };
const APPLY = { ...DRY, apply: true };
const BLUE = whereaboutsNad('a/blue', { range: '10.0.0.0/24' });
const RED = whereaboutsNad('b/red', { range: '10.1.0.0/24' });

function world(): MigrationCluster {
  return new MigrationCluster(
    observedOf({
      nads: [BLUE, RED],
      ipPools: [
        ipPool('10.0.0.0-24', '10.0.0.0/24', { 5: 'a/p', 6: 'a/q', 7: 'a/gone', what: 'a/p' }),
        ipPool('10.1.0.0-24', '10.1.0.0/24', { 5: 'b/p' }),
      ],
      pods: [livePod('a/p'), livePod('a/q'), livePod('b/p')],
    }),
  );
}

const ALL = ['blue.10-0-0-5 a/p', 'blue.10-0-0-6 a/q', 'red.10-1-0-5 b/p'];

function reassign(cluster: MigrationCluster, allocations: Record<string, string>): void {
  cluster.put(IP_POOLS, ipPool('10.0.0.0-24', '10.0.0.0/24', allocations));
}

describe('the migration from whereabouts', () => {
  it('writes nothing without --apply and prints the plan', async () => {
    const cluster = world();
    expect(await migrateWhereabouts(DRY, cluster.deps())).to.equal(true);
    expect(cluster.writes).to.equal(0);
    expect(cluster.printed.join('\n'))
      .to.match(/blue\.10-0-0-5 +a\/p +node-1 +net1/)
      .and.match(/allocation "what"/)
      .and.include('2 pools and 3 leases to create, 0 existing leases, 2 left out, 0 conflicts');
  });

  it('creates the pools before the leases, and nothing else', async () => {
    const cluster = world();
    const writes: string[] = [];
    cluster.beforeWrite = ({ verb, resource: { plural } }) => writes.push(`${verb} ${plural}`);
    expect(await migrateWhereabouts(APPLY, cluster.deps())).to.equal(true);
    expect(cluster.held()).to.deep.equal(ALL);
    expect(writes).to.deep.equal([
      ...Array<string>(2).fill('create addresspools'),
      ...Array<string>(3).fill('create addressleases'),
    ]);
    expect(cluster.printed.join('\n'))
      .to.include('created 2 pools and 3 leases')
      .and.match(/kubectl -n a patch net-attach-def blue .*\\"type\\":\\"holdfast\\"/);
  });

  it('finds everything done in a second run', async () => {
    const cluster = world();
    await migrateWhereabouts(APPLY, cluster.deps());
    const { writes } = cluster;
    expect(await migrateWhereabouts(APPLY, cluster.deps())).to.equal(true);
    expect(cluster.writes).to.equal(writes);
    expect(cluster.printed.join('\n')).to.include('created 0 pools and 0 leases; 3 leases existed already');
  });

  it('continues after it was killed at any write', async () => {
    const complete = world();
    await migrateWhereabouts(APPLY, complete.deps());
    const pools = JSON.stringify(complete.all(ADDRESS_POOLS).map(({ metadata, spec }) => [metadata.name, spec]));
    for (let last = 0; last <= complete.writes; last++) {
      const cluster = world();
      const ending = { dead: false };
      cluster.beforeWrite = () => {
        // once it is dead none of the writes that were under way is made
        if (cluster.writes >= last) ending.dead = true;
        if (ending.dead) throw new ProcessKilled();
      };
      cluster.clock.sleep = () => Promise.reject(new ProcessKilled());
      await migrateWhereabouts(APPLY, cluster.deps());
      expect(cluster.writes).to.equal(Math.min(last, complete.writes));
      cluster.beforeWrite = () => undefined;
      expect(await migrateWhereabouts(APPLY, cluster.deps()), `killed after write ${last}`).to.equal(true);
      expect(cluster.held()).to.deep.equal(ALL);
      expect(JSON.stringify(cluster.all(ADDRESS_POOLS).map(({ metadata, spec }) => [metadata.name, spec]))).to.equal(
        pools,
      );
    }
  });

  it('leases thousands of addresses in two interrupted runs', async () => {
    const big = makeLargeCluster(3_000);
    const cluster = new MigrationCluster(big);
    cluster.beforeWrite = () => {
      if (cluster.writes >= 1_500) throw new TransportError('aborted', 'killed');
    };
    cluster.clock.sleep = () => Promise.resolve();
    expect(await migrateWhereabouts(APPLY, cluster.deps())).to.equal(false);
    cluster.beforeWrite = () => undefined;
    expect(await migrateWhereabouts(APPLY, cluster.deps())).to.equal(true);
    expect(cluster.all(ADDRESS_LEASES)).to.have.length(big.live);
  }).timeout(30_000);

  it('leases addresses that whereabouts allocates meanwhile, and leaves those of pods that are gone to agents and ipam', async () => {
    const cluster = world();
    let lists = 0;
    cluster.afterList = ({ plural }) => {
      if (plural !== 'pods' || ++lists !== 1) return;
      cluster.remove(PODS, 'a/q');
      cluster.put(PODS, livePod('a/new'));
      reassign(cluster, { 5: 'a/p', 8: 'a/new' });
    };
    expect(await migrateWhereabouts(APPLY, cluster.deps())).to.equal(true);
    expect(cluster.held()).to.deep.equal([
      'blue.10-0-0-5 a/p',
      'blue.10-0-0-6 a/q',
      'blue.10-0-0-8 a/new',
      'red.10-1-0-5 b/p',
    ]);
  });

  for (const released of [false, true]) {
    it(`leases to a pod the address that whereabouts took from another after an earlier run${released ? ', and an agent had released' : ''}`, async () => {
      const cluster = world();
      await migrateWhereabouts(APPLY, cluster.deps());
      cluster.remove(PODS, 'a/q');
      cluster.put(PODS, livePod('a/new'));
      reassign(cluster, { 5: 'a/p', 6: 'a/new' });
      if (released) cluster.release('blue.10-0-0-6');
      expect(await migrateWhereabouts(APPLY, cluster.deps())).to.equal(true);
      expect(cluster.held()).to.deep.equal(['blue.10-0-0-5 a/p', 'blue.10-0-0-6 a/new', 'red.10-1-0-5 b/p']);
      const lease = cluster.all(ADDRESS_LEASES).find(({ metadata }) => metadata.name === 'blue.10-0-0-6');
      expect(lease?.spec).to.deep.include({ containerID: 'c-a-new', interface: 'net1', node: 'node-1' });
    });
  }

  describe('with conflicts', () => {
    const conflicted = () => {
      const cluster = world();
      cluster.put(ADDRESS_LEASES, leaseOf('10.0.0.5', 1));
      return cluster;
    };

    it('writes nothing', async () => {
      const cluster = conflicted();
      expect(await migrateWhereabouts(APPLY, cluster.deps())).to.equal(false);
      expect(cluster.writes).to.equal(0);
      expect(cluster.logged.join()).to.include('the plan has conflicts (1)');
      expect(cluster.printed.join('\n')).to.match(/10\.0\.0\.5 in address space blue: .* held by IPAMClaim a\/c1/);
    });

    it('skips them with --skip-conflicts and returns false', async () => {
      const cluster = conflicted();
      expect(await migrateWhereabouts({ ...APPLY, skipConflicts: true }, cluster.deps())).to.equal(false);
      expect(cluster.held()).to.deep.equal(['blue.10-0-0-5 a/c1', ...ALL.slice(1)]);
    });

    it('reports an address that was leased after the plan, and leases the others', async () => {
      const cluster = world();
      cluster.beforeWrite = ({ resource: { plural } }) => {
        if (plural !== 'addressleases') return;
        cluster.beforeWrite = () => undefined;
        cluster.put(ADDRESS_LEASES, leaseOf('10.0.0.5', 1));
      };
      expect(await migrateWhereabouts(APPLY, cluster.deps())).to.equal(false);
      expect(cluster.held()).to.deep.equal(['blue.10-0-0-5 a/c1', ...ALL.slice(1)]);
      expect(cluster.printed.join('\n')).to.match(/failed: blue\.10-0-0-5: 10\.0\.0\.5 is in use twice/);
    });
  });

  it('leases nothing from a pool that cannot be created, and says why', async () => {
    const cluster = world();
    cluster.beforeWrite = ({ resource: { plural }, name }) => {
      if (plural === 'addresspools' && name === 'blue.a')
        throw new StatusError({ request: 'POST', status: 403, reason: 'Forbidden', message: 'a policy says no' });
    };
    expect(await migrateWhereabouts(APPLY, cluster.deps())).to.equal(false);
    expect(cluster.held()).to.deep.equal(['red.10-1-0-5 b/p']);
    expect(cluster.printed.join('\n')).to.match(/failed: blue\.a: .*a policy says no/);
  });

  it('retries a write whose answer was lost', async () => {
    const cluster = world();
    let lost = 0;
    cluster.before = ({ method }) =>
      method === 'POST' && ++lost <= 4
        ? { error: new TransportError('broken', 'the connection broke'), applied: true }
        : undefined;
    cluster.clock.sleep = () => Promise.resolve();
    expect(await migrateWhereabouts(APPLY, cluster.deps())).to.equal(true);
    expect(cluster.held()).to.deep.equal(ALL);
  });

  it('uses an equal pool that another writer created meanwhile', async () => {
    const cluster = world();
    cluster.beforeWrite = () => {
      cluster.beforeWrite = () => undefined;
      cluster.put(ADDRESS_POOLS, adminPool('blue.a', { network: 'other' }));
    };
    expect(await migrateWhereabouts(APPLY, cluster.deps())).to.equal(false);
    expect(cluster.printed.join('\n')).to.match(/failed: blue\.a: another pool of this name/);
  });

  it('prints plan and result as JSON on request', async () => {
    const cluster = world();
    await migrateWhereabouts({ ...APPLY, output: 'json' }, cluster.deps());
    const { plan, applied } = JSON.parse(cluster.printed.join('\n')) as { plan: { leases: object[] }; applied: object };
    expect(plan.leases[0]).to.deep.include({ name: 'blue.10-0-0-5', state: 'create', containerID: 'c-a-p' });
    expect(applied).to.deep.include({ poolsMade: ['blue.a', 'red.b'], failed: [] });
  });

  it('refuses an unknown network and names the known ones', async () => {
    const end = await migrateWhereabouts({ ...DRY, network: 'blu' }, world().deps()).catch((error: unknown) => error);
    expect(end).to.be.instanceOf(CommandError);
    expect((end as CommandError).message).to.match(/network blu .*known networks: blue, red$/);
  });

  for (const [plural, words] of [
    ['ippools', 'is whereabouts installed'],
    ['addressleases', 'install Holdfast first'],
    ['network-attachment-definitions', 'install Multus first'],
  ] as const) {
    it(`says what to do if the API server does not serve ${plural}`, async () => {
      const cluster = world();
      cluster.before = ({ path }) => {
        if (path.endsWith(`/${plural}`))
          throw new StatusError({ request: 'GET', status: 404, reason: 'NotFound', message: 'page not found' });
      };
      const end = await migrateWhereabouts(DRY, cluster.deps()).catch((error: unknown) => error);
      expect(end).to.be.instanceOf(CommandError);
      expect((end as CommandError).message)
        .to.include(`does not serve ${plural}.`)
        .and.include(words);
    });
  }

  it('refuses a namespace without IPPools and names those that have some', async () => {
    const cluster = world();
    const end = await migrateWhereabouts({ ...APPLY, namespace: 'elsewhere' }, cluster.deps()).catch(
      (error: unknown) => error,
    );
    expect(end).to.be.instanceOf(CommandError);
    expect((end as CommandError).message).to.include('no IPPools in namespace elsewhere, but in kube-system');
    expect(cluster.writes).to.equal(0);
  });

  it('continues if there are no IPPools because whereabouts has allocated nothing', async () => {
    const cluster = new MigrationCluster(observedOf({ nads: [BLUE] }));
    expect(await migrateWhereabouts(DRY, cluster.deps())).to.equal(true);
    expect(cluster.logged.join()).to.include('no IPPools in namespace kube-system, nor in any other');
    expect(cluster.printed.at(-2)).to.include('1 pool and 0 leases to create');
  });
});
