import { systemClock } from '../../kube/clock.js';
import { UsageError } from '../../process/read-arguments.js';
import { CONCURRENCY } from '../cluster-client.js';
import { defineCommand, nonEmptyName } from '../command.js';
import { ExitCode } from '../exit-code.js';
import type { UninstallOptions } from '../uninstall/plan.js';
import { uninstall } from '../uninstall/uninstall.js';
import { type MigrateOptions, WHEREABOUTS_NAMESPACE, migrateWhereabouts } from '../whereabouts/migrate.js';

export const UNINSTALL = defineCommand({
  usage: 'uninstall',
  description:
    'check what uses Holdfast, and say how to remove it and what stays; with --everything, remove what then is left',
  options: [
    {
      flags: '--everything',
      description: 'after the processes are gone, remove claims, pools, leases and the kinds of Holdfast',
    },
    {
      flags: '--ignore-running-pods',
      description: 'with --everything: remove everything although pods use addresses of Holdfast',
    },
    { flags: '--yes', description: 'with --everything: do not ask' },
    { flags: '--dry-run', description: 'print what would be removed, and remove nothing' },
  ],
  read: (_args, given: UninstallOptions) => {
    const flag = given.ignoreRunningPods ? '--ignore-running-pods' : given.yes ? '--yes' : undefined;
    if (flag !== undefined && !given.everything)
      throw new UsageError(`${flag} needs --everything: without it, the command removes nothing`);
    return given;
  },
  run: (options, { terminal, connect }) =>
    connect(async (cluster) => {
      const deps = { ...cluster, clock: systemClock, concurrency: CONCURRENCY, ...terminal };
      return (await uninstall(options, deps)) ? ExitCode.done : ExitCode.failed;
    }),
});

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
  read: (_args, given: Pick<MigrateOptions, 'apply' | 'network' | 'skipConflicts'>, common): MigrateOptions => {
    nonEmptyName(given.network, '--network');
    if (given.skipConflicts && !given.apply)
      throw new UsageError('--skip-conflicts needs --apply: without --apply, the plan only lists the conflicts');
    return { ...given, namespace: common.namespace ?? WHEREABOUTS_NAMESPACE, output: common.output };
  },
  run: (options, { terminal, connect }) =>
    connect(async ({ client, clusterFlags }) => {
      const deps = { client, clusterFlags, clock: systemClock, concurrency: CONCURRENCY, ...terminal };
      return (await migrateWhereabouts(options, deps)) ? ExitCode.done : ExitCode.failed;
    }),
});
