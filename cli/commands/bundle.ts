import { systemClock } from '../../kube/clock.js';
import { UsageError } from '../../process/read-arguments.js';
import { bundleName, writeBundle } from '../bundle/write-bundle.js';
import { defineCommand, nonEmptyName } from '../command.js';
import { ExitCode } from '../exit-code.js';

interface GivenOptions {
  readonly outputFile?: string;
  readonly since?: string;
}

const SECONDS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400 };

export const BUNDLE = defineCommand({
  usage: 'bundle',
  description:
    'write an archive with the objects, logs and metrics of Holdfast, without secrets, for somebody who helps you',
  options: [
    {
      flags: '--output-file <path>',
      description: 'path of the archive, or - for standard output; default: holdfast-bundle-<time>.tar.gz',
    },
    { flags: '--since <duration>', description: 'only log lines that are not older, like 30m, 2h or 1d' },
  ],
  common: { namespace: 'namespace of the claims, VMs, networks and events; default: all' },
  read: (_args, { outputFile, since }: GivenOptions, { namespace }) => ({
    file: nonEmptyName(outputFile, '--output-file'),
    options: { namespace, sinceSeconds: since === undefined ? undefined : secondsOf(since) },
  }),
  run: ({ file, options }, { terminal, connect }) =>
    connect(async (cluster) => {
      const now = systemClock.wall();
      const path = file ?? `${bundleName(now)}.tar.gz`;
      const target = path === '-' ? { stream: process.stdout } : { file: path };
      const missing = await writeBundle(cluster, target, options, { now, showProgress: terminal.showProgress });
      for (const line of missing) terminal.printStatus(line);
      if (path !== '-') terminal.print(`wrote ${path}`);
      return ExitCode.done;
    }),
});

function secondsOf(text: string): number {
  const [, number = '', unit = ''] = /^(\d{1,6})([smhd])$/.exec(text) ?? [];
  const seconds = Number(number) * (SECONDS[unit] ?? 0);
  if (seconds === 0) throw new UsageError(`--since: "${text}" is not a duration: write it like 30m, 2h or 1d`);
  return seconds;
}
