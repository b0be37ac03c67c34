import { expect } from 'chai';
import { ADDRESS_LEASES, ADDRESS_POOLS, PODS } from '../../kube/resources.js';
import { parseAddress } from '../../addressing/address/address.js';
import { createLease } from '../../addressing/lease/lease.js';
import {
  MigrationCluster,
  ipPool,
  livePod,
  whereaboutsNad,
  observedOf,
  reservation,
} from '../testing/migration-world.js';
import { StatusError } from '../../kube/errors.js';
import { adminPool } from '../../test/objects/pool-objects.js';
import { unreserve } from '../reserve.js';
import { IP_RESERVATIONS } from './plan-types.js';
import { type MigrateOptions, migrateWhereabouts } from './migrate.js';

const APPLY: MigrateOptions = { apply: true, namespace: 'kube-system', skipConflicts: false, output: 'table' };
const BLUE = whereaboutsNad('a/blue', { range: '10.0.0.0/24' });

/** whereabouts has given 10.0.0.5 to a/p. */
function world(): MigrationCluster {
  const ipPools = [ipPool('10.0.0.0-24', '10.0.0.0/24', { 5: 'a/p' })];
  return new MigrationCluster(observedOf({ nads: [BLUE], ipPools, pods: [livePod('a/p')] }));
}

/** An agent leases 10.0.0.5 to pod b/young, between the plan and the first lease. @param uid of the pod as it is then; undefined: it is gone */
function leasesMeanwhile(cluster: MigrationCluster, uid?: string): void {
  cluster.beforeWrite = ({ resource: { plural } }) => {
    if (plural !== 'addressleases') return;
    cluster.beforeWrite = () => undefined;
    if (uid !== undefined) cluster.put(PODS, livePod('b/young', { uid }));
    const owner = { kind: 'Pod', namespace: 'b', name: 'young', uid: 'b/young-uid' } as const;
    const request = { address: parseAddress('10.0.0.5'), addressSpace: 'blue', pool: 'blue.a', owner };
    cluster.put(ADDRESS_LEASES, createLease(request).object);
  };
}

const RED = whereaboutsNad('b/red', { range: '10.0.0.0/24' }, { born: 2 });
const GREEN = whereaboutsNad('c/green', { range: '10.9.0.0/24' });

/** blue and red share a range; green has one of its own. */
function shared(): MigrationCluster {
  return new MigrationCluster(
    observedOf({
      nads: [BLUE, RED, GREEN],
      ipPools: [
        ipPool('10.0.0.0-24', '10.0.0.0/24', { 5: 'a/p', 6: 'b/q' }),
        ipPool('10.9.0.0-24', '10.9.0.0/24', { 5: 'c/r' }),
      ],
      pods: [
        livePod('a/p', { has: { 'a/blue': ['10.0.0.5'] } }),
        livePod('b/q', { has: { 'b/red': ['10.0.0.6'] } }),
        livePod('c/r'),
      ],
    }),
  );
}

function commandsOf({ printed }: MigrationCluster): string[] {
  return printed.flatMap((line) => / patch net-attach-def (\S+)/.exec(line)?.[1] ?? []);
}

describe('the writes of a migration from whereabouts', () => {
  describe('after an agent has leased an address of the plan', () => {
    it('leave the lease to a pod that is newer than the list of pods', async () => {
      const cluster = world();
      leasesMeanwhile(cluster, 'b/young-uid');
      expect(await migrateWhereabouts(APPLY, cluster.deps())).to.equal(false);
      expect(cluster.held()).to.deep.equal(['blue.10-0-0-5 b/young']);
    });

    for (const [title, uid] of [
      ['is gone', undefined],
      ['was replaced by another of its name', 'another-uid'],
    ] as const) {
      it(`take over the lease of a pod that ${title}`, async () => {
        const cluster = world();
        leasesMeanwhile(cluster, uid);
        expect(await migrateWhereabouts(APPLY, cluster.deps())).to.equal(true);
        expect(cluster.held()).to.deep.equal(['blue.10-0-0-5 a/p']);
      });
    }

    it('leave the lease to a pod that cannot be read', async () => {
      const cluster = world();
      leasesMeanwhile(cluster, 'b/young-uid');
      cluster.clock.sleep = () => Promise.resolve();
      const deps = cluster.deps();
      const { get } = deps.client;
      deps.client.get = (resource, ref) => {
        const error = new StatusError({ request: 'GET', status: 404, reason: 'NotFound', message: 'page not found' });
        return resource.plural === 'pods' ? Promise.reject(error) : get(resource, ref);
      };
      expect(await migrateWhereabouts(APPLY, deps)).to.equal(false);
      expect(cluster.held()).to.deep.equal(['blue.10-0-0-5 b/young']);
    });
  });

  describe('after another user has created the pool', () => {
    for (const [title, cidr, held] of [
      ['use the pool if it is the same', '10.0.0.0/24', ['blue.10-0-0-5 a/p']],
      ['lease nothing from the pool if it has other subnets', '10.0.0.0/30', []],
    ] as const) {
      it(title, async () => {
        const cluster = world();
        cluster.beforeWrite = () => {
          cluster.beforeWrite = () => undefined;
          cluster.put(ADDRESS_POOLS, adminPool('blue.a', { nadNamespace: 'a', cidr }));
        };
        expect(await migrateWhereabouts(APPLY, cluster.deps())).to.equal(held.length > 0);
        expect(cluster.held()).to.deep.equal(held);
      });
    }
  });

  describe('are followed by next steps', () => {
    it('that group NADs with a common range', async () => {
      const cluster = shared();
      expect(await migrateWhereabouts(APPLY, cluster.deps())).to.equal(true);
      expect(cluster.printed.join('\n'))
        .to.match(
          /space blue: change all NADs together, and start no pods .*:\n.* blue .*\n.* red .*\n *Address space green:\n.* green /,
        )
        .and.not.match(/space green, all/);
    });

    it('that name the failed lease for which NADs have to wait', async () => {
      const cluster = shared();
      cluster.beforeWrite = ({ name }) => {
        if (name === 'blue.10-0-0-6')
          throw new StatusError({ request: 'r', status: 403, reason: 'Forbidden', message: 'forbidden' });
      };
      expect(await migrateWhereabouts(APPLY, cluster.deps())).to.equal(false);
      expect(commandsOf(cluster)).to.deep.equal(['green']);
      expect(cluster.printed.join('\n')).to.match(
        /Not yet: address space blue \(a\/blue, b\/red\)\. Resolve first: .*blue\.10-0-0-6/,
      );
    });

    it('that name the failed pool for which NADs have to wait', async () => {
      const cluster = shared();
      cluster.beforeWrite = ({ name }) => {
        if (name === 'red.b') throw new StatusError({ request: 'r', status: 403, reason: 'Forbidden', message: 'no' });
      };
      expect(await migrateWhereabouts(APPLY, cluster.deps())).to.equal(false);
      expect(commandsOf(cluster)).to.deep.equal(['green']);
    });
  });

  describe('if conflicts are skipped', () => {
    const twice = () => {
      const cluster = shared();
      cluster.put(PODS, livePod('b/q', { has: { 'b/red': ['10.0.0.5'] } }));
      cluster.put(IP_RESERVATIONS, reservation('10.0.0.5', 'b/q'));
      return cluster;
    };

    it('reserve the address of two pods and print no command for their NADs', async () => {
      const cluster = twice();
      expect(await migrateWhereabouts({ ...APPLY, skipConflicts: true }, cluster.deps())).to.equal(false);
      expect(cluster.held()).to.deep.equal(['blue.10-0-0-5 reserved', 'green.10-9-0-5 c/r']);
      expect(commandsOf(cluster)).to.deep.equal(['green']);
      expect(cluster.printed.join('\n')).to.match(
        /reserved because of conflicts: 1 .*\n *kubectl holdfast unreserve blue\.a 10\.0\.0\.5/,
      );
    });

    it('continue after the conflict is resolved and the reservation removed', async () => {
      const cluster = twice();
      await migrateWhereabouts({ ...APPLY, skipConflicts: true }, cluster.deps());
      cluster.remove(PODS, 'b/q');
      expect(await migrateWhereabouts(APPLY, cluster.deps())).to.equal(false);
      expect(cluster.printed.join('\n')).to.match(/10\.0\.0\.5 in address space blue: .*unreserve blue\.a 10\.0\.0\.5/);
      await unreserve({ pool: 'blue.a', address: '10.0.0.5' }, cluster.client);
      expect(await migrateWhereabouts(APPLY, cluster.deps())).to.equal(true);
      expect(cluster.held()).to.include('blue.10-0-0-5 a/p');
    });
  });
});
