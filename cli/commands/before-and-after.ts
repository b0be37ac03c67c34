import { defineCommand } from '../command.js';
import { exitCodeOf, formatChecks } from '../doctor/check-report.js';
import { printOutput } from '../output.js';
import { observeTarget } from '../preflight/observe.js';
import { preflight } from '../preflight/preflight.js';

export const PREFLIGHT = defineCommand({
  usage: 'preflight',
  description:
    'say before an installation what stands in its way, and what it changes; it changes nothing. Exit code 3 if something fails',
  common: { output: true },
  read: (_args, _given, { output }) => output,
  run: (output, { terminal, connect }) =>
    connect(async ({ client }) => {
      const reports = preflight(await observeTarget(client, terminal.showProgress));
      printOutput(output, formatChecks(reports, { allWell: 'nothing stands in the way' }), terminal.print);
      return exitCodeOf(reports);
    }),
});
