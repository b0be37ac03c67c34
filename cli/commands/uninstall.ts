import { systemClock } from '../../kube/clock.js';
import { UsageError } from '../../process/read-arguments.js';
import { CONCURRENCY } from '../cluster-client.js';
import { defineCommand } from '../command.js';
import { ExitCode } from '../exit-code.js';
import type { UninstallOptions } from '../uninstall/plan.js';
import { uninstall } from '../uninstall/uninstall.js';

type GivenOptions = { readonly [Flag in keyof UninstallOptions]?: true };

export const UNINSTALL = defineCommand({
  usage: 'uninstall',
  description:
    'remove the processes, rights and policies of Holdfast; VMs keep running, and pools, leases and claims are kept',
  options: [
    { flags: '--everything', description: 'remove also claims, pools, leases and the kinds of Holdfast' },
    {
      flags: '--ignore-running-pods',
      description: 'with --everything: remove everything although pods use addresses of Holdfast',
    },
    { flags: '--yes', description: 'do not ask' },
    { flags: '--dry-run', description: 'print what would be removed, and remove nothing' },
  ],
  read: (_args, given: GivenOptions): UninstallOptions => {
    if (given.ignoreRunningPods === true && given.everything !== true) {
      throw new UsageError('--ignore-running-pods needs --everything: otherwise pods keep their addresses anyway');
    }
    return {
      everything: given.everything === true,
      ignoreRunningPods: given.ignoreRunningPods === true,
      yes: given.yes === true,
      dryRun: given.dryRun === true,
    };
  },
  run: (options, { terminal, connect }) =>
    connect(async ({ client, server }) => {
      const deps = { client, server, clock: systemClock, concurrency: CONCURRENCY, ...terminal };
      return (await uninstall(options, deps)) ? ExitCode.done : ExitCode.failed;
    }),
});
