import { expect } from 'chai';
import { parseAddress } from '../../ipam/core/address.js';
import { createLease } from '../../ipam/core/lease.js';
import { MigrationCluster, ipPool, livePod, movingNad, observedOf } from '../../test/migration-world.js';
import { type MigrateOptions, migrateWhereabouts } from './migrate.js';

const APPLY: MigrateOptions = { apply: true, namespace: 'kube-system', skipConflicts: false, json: false };
const BLUE = movingNad('a/blue', { range: '10.0.0.0/24' });

/** whereabouts has given 10.0.0.5 to a/p. */
function world(): MigrationCluster {
  const ipPools = [ipPool('10.0.0.0-24', '10.0.0.0/24', { 5: 'a/p' })];
  return new MigrationCluster(observedOf({ nads: [BLUE], ipPools, pods: [livePod('a/p')] }));
}

/** An agent leases 10.0.0.5 to pod b/young, between the plan and the first lease. @param uid of the pod as it is then; undefined: it is gone */
function leasesMeanwhile(cluster: MigrationCluster, uid?: string): void {
  cluster.beforeWrite = ({ plural }) => {
    if (plural !== 'addressleases') return;
    cluster.beforeWrite = () => undefined;
    if (uid !== undefined) cluster.put('pods', livePod('b/young', { uid }));
    const owner = { kind: 'Pod', namespace: 'b', name: 'young', uid: 'b/young-uid' } as const;
    const request = { address: parseAddress('10.0.0.5'), addressSpace: 'blue', pool: 'blue.a', owner };
    const write = createLease(request);
    if (write.verb === 'create') cluster.put('addressleases', write.lease);
  };
}

describe('what is written to move over from whereabouts', () => {
  describe('where an agent leases an address after the list of pods', () => {
    it('leaves the lease to a pod that is younger than the list', async () => {
      const cluster = world();
      leasesMeanwhile(cluster, 'b/young-uid');
      expect(await migrateWhereabouts(APPLY, cluster.deps())).to.equal(false);
      expect(cluster.held()).to.deep.equal(['blue.10-0-0-5 b/young']);
    });

    for (const [title, uid] of [
      ['is gone by then', undefined],
      ['was another one of the same name', 'another-uid'],
    ] as const) {
      it(`takes the lease of a pod that ${title}`, async () => {
        const cluster = world();
        leasesMeanwhile(cluster, uid);
        expect(await migrateWhereabouts(APPLY, cluster.deps())).to.equal(true);
        expect(cluster.held()).to.deep.equal(['blue.10-0-0-5 a/p']);
      });
    }
  });
});
