import { systemClock } from '../../kube/clock.js';
import { UsageError } from '../../process/read-arguments.js';
import { CONCURRENCY } from '../cluster-client.js';
import { defineCommand, nonEmptyName } from '../command.js';
import { ExitCode } from '../exit-code.js';
import { WHEREABOUTS_NAMESPACE, type MigrateOptions, migrateWhereabouts } from '../whereabouts/migrate.js';

interface GivenOptions {
  readonly apply?: true;
  readonly network?: string;
  readonly skipConflicts?: true;
}

export const MIGRATE_WHEREABOUTS = defineCommand({
  usage: 'migrate whereabouts',
  description:
    'create pools and leases for the addresses that whereabouts has allocated; without --apply, print the plan only',
  options: [
    { flags: '--apply', description: 'create the pools and leases of the plan' },
    { flags: '--network <name>', description: 'migrate only this CNI network, and those that share its addresses' },
    {
      flags: '--skip-conflicts',
      description: 'with --apply: skip addresses with conflicts; otherwise a conflict prevents all writes',
    },
  ],
  common: { namespace: `namespace of the IPPools of whereabouts; default: ${WHEREABOUTS_NAMESPACE}`, output: true },
  read: (_args, given: GivenOptions, { namespace = WHEREABOUTS_NAMESPACE, output }): MigrateOptions => {
    const network = nonEmptyName(given.network, '--network');
    if (given.skipConflicts === true && given.apply !== true) {
      throw new UsageError('--skip-conflicts needs --apply: without --apply, the plan only lists the conflicts');
    }
    return {
      apply: given.apply === true,
      namespace,
      skipConflicts: given.skipConflicts === true,
      output,
      ...(network !== undefined && { network }),
    };
  },
  run: (options, { terminal, connect }) =>
    connect(async ({ client }) => {
      const deps = { client, clock: systemClock, concurrency: CONCURRENCY, ...terminal };
      return (await migrateWhereabouts(options, deps)) ? ExitCode.done : ExitCode.failed;
    }),
});
