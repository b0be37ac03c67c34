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
  read: (_args, given: GivenOptions): UninstallOptions => {
    for (const [isGiven, flag] of [
      [given.ignoreRunningPods, '--ignore-running-pods'],
      [given.yes, '--yes'],
    ] as const) {
      if (isGiven === true && given.everything !== true)
        throw new UsageError(`${flag} needs --everything: without it, the command removes nothing`);
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
