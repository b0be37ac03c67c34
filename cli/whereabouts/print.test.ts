import { expect } from 'chai';
import { ADDRESS_LEASES, NETWORK_ATTACHMENT_DEFINITIONS } from '../../kube/resources.js';
import { leaseOf } from '../../test/objects/lease-objects.js';
import { MigrationCluster, ipPool, livePod, whereaboutsNad, observedOf } from '../testing/migration-world.js';
import { type MigrateOptions, migrateWhereabouts } from './migrate.js';

const DRY: MigrateOptions = { apply: false, namespace: 'kube-system', skipConflicts: false, output: 'table' };
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

describe('a printed migration plan ends', () => {
  it('with the command that applies it', async () => {
    expect(await outlook(world())).to.deep.equal([
      'Nothing has been written yet: 1 pool and 1 lease to create, 0 existing leases, 0 left out, 0 conflicts. To apply the plan, run:',
      COMMAND,
    ]);
  });

  it('with a command for the same cluster and user, as all printed commands are', async () => {
    const cluster = world();
    cluster.clusterFlags = ' --context staging --as eve';
    expect((await outlook(cluster)).at(-1)).to.equal(
      'kubectl holdfast migrate whereabouts --context staging --as eve --apply',
    );
    await migrateWhereabouts({ ...DRY, apply: true }, cluster.deps());
    expect(cluster.printed.find((line) => line.includes('patch net-attach-def'))).to.match(
      /kubectl -n a patch net-attach-def blue .*}' --context staging --as eve$/,
    );
  });

  it('with the command that skips its conflicts because others would be refused', async () => {
    const cluster = world();
    cluster.put(ADDRESS_LEASES, leaseOf('10.0.0.5', 1));
    const [line, command] = await outlook(cluster);
    expect(line).to.match(
      /^Nothing has been written yet: .*, 1 conflict\. Resolve the conflicts.* To migrate everything else/,
    );
    expect(command).to.equal(`${COMMAND} --skip-conflicts`);
  });

  it('with no command if there are only conflicts', async () => {
    const cluster = world();
    cluster.remove(NETWORK_ATTACHMENT_DEFINITIONS, 'a/blue');
    const lines = await outlook(cluster);
    expect(lines).to.have.length(1);
    expect(lines[0]).to.match(/1 conflict\. Resolve the conflicts and run this command again\.$/);
  });

  it('with the command that prints the changes of NADs if all leases exist', async () => {
    const [line, command] = await outlook(await leased());
    expect(line).to.match(
      /^You only have to change the NADs: 0 pools and 0 leases to create, 1 existing lease, .*run:$/,
    );
    expect(command).to.equal(COMMAND);
  });

  it('by saying that there is nothing to do if all NADs have changed', async () => {
    const cluster = await leased();
    cluster.put(NETWORK_ATTACHMENT_DEFINITIONS, whereaboutsNad('a/blue', { type: 'holdfast', range: RANGE }));
    expect(await outlook(cluster)).to.deep.equal([
      'There is nothing to do: 0 pools and 0 leases to create, 1 existing lease, 0 left out, 0 conflicts.',
    ]);
  });
});

describe('the conflicts of a migration', () => {
  for (const [state, more, command] of [
    ['reserved', { reserved: true }, 'kubectl holdfast unreserve blue 10.0.0.5'],
    ['quarantined', { takenBy: '02:00:00:00:00:99' }, 'kubectl delete alease blue.10-0-0-5'],
  ] as const) {
    it(`name the command for the same cluster and user if an address is ${state}, before or after the plan`, async () => {
      const cluster = world();
      cluster.clusterFlags = ' --context staging --as eve';
      const lease = leaseOf('10.0.0.5', 1, more);
      cluster.beforeWrite = () => void cluster.put(ADDRESS_LEASES, lease);
      await migrateWhereabouts({ ...DRY, apply: true }, cluster.deps());
      await migrateWhereabouts(DRY, cluster.deps());
      const commands = cluster.printed.filter((line) => line.includes(command));
      expect(commands).to.have.length(2);
      for (const line of commands) expect(line).to.include(`${command} --context staging --as eve`);
    });
  }
});
