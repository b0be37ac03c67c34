import { expect } from 'chai';
import { leaseOf } from '../../test/lease-objects.js';
import { MigrationCluster, ipPool, livePod, whereaboutsNad, observedOf } from '../testing/migration-world.js';
import { type MigrateOptions, migrateWhereabouts } from './migrate.js';

const DRY: MigrateOptions = { apply: false, namespace: 'kube-system', skipConflicts: false, json: false };
const COMMAND = 'kubectl holdfast migrate whereabouts --apply';
const RANGE = '10.0.0.0/24';

/** whereabouts has given 10.0.0.5 to a/p. */
function world(): MigrationCluster {
  const nads = [whereaboutsNad('a/blue', { range: RANGE })];
  const ipPools = [ipPool('10.0.0.0-24', RANGE, { 5: 'a/p' })];
  return new MigrationCluster(observedOf({ nads, ipPools, pods: [livePod('a/p')] }));
}

/** What is printed below the sections of the plan. */
async function outlook(cluster: MigrationCluster): Promise<string[]> {
  cluster.printed.length = 0;
  await migrateWhereabouts(DRY, cluster.deps());
  return cluster.printed.slice(cluster.printed.lastIndexOf('') + 1);
}

async function leased(): Promise<MigrationCluster> {
  const cluster = world();
  await migrateWhereabouts({ ...DRY, apply: true }, cluster.deps());
  return cluster;
}

describe('a plan for moving over ends', () => {
  it('with the command that does it', async () => {
    expect(await outlook(world())).to.deep.equal([
      'Nothing is written yet: 1 pool and 1 lease to make, 0 leases there, 0 left out, 0 conflicts. This does it:',
      COMMAND,
    ]);
  });

  it('with the command that passes over its conflicts, for any other is refused', async () => {
    const cluster = world();
    cluster.put('addressleases', leaseOf('10.0.0.5', 1));
    const [line, command] = await outlook(cluster);
    expect(line).to.match(/^Nothing is written yet: .*, 1 conflict\. Resolve the conflicts.* This does what has none/);
    expect(command).to.equal(`${COMMAND} --skip-conflicts`);
  });

  it('with no command where there is nothing but conflicts', async () => {
    const cluster = world();
    cluster.remove('network-attachment-definitions', 'a/blue');
    const lines = await outlook(cluster);
    expect(lines).to.have.length(1);
    expect(lines[0]).to.match(/1 conflict\. Resolve the conflicts, and look again\.$/);
  });

  it('with the command that says how the NADs change, where all is leased', async () => {
    const [line, command] = await outlook(await leased());
    expect(line).to.match(/^The NADs are left, .*: 0 pools and 0 leases to make, 1 lease there, .*This says how:$/);
    expect(command).to.equal(COMMAND);
  });

  it('by saying that there is nothing to do, where all has moved', async () => {
    const cluster = await leased();
    cluster.put('network-attachment-definitions', whereaboutsNad('a/blue', { type: 'holdfast', range: RANGE }));
    expect(await outlook(cluster)).to.deep.equal([
      'There is nothing to do: 0 pools and 0 leases to make, 1 lease there, 0 left out, 0 conflicts.',
    ]);
  });
});
