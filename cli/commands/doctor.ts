import { VERSION } from '../../process/version.js';
import { defineCommand } from '../command.js';
import { diagnose, isError } from '../doctor/diagnose.js';
import { observeCluster } from '../doctor/observe.js';
import { reportOf } from '../doctor/report.js';
import { ExitCode } from '../exit-code.js';
import { printOutput } from '../output.js';

export const DOCTOR = defineCommand({
  usage: 'doctor',
  description:
    'find what is wrong with Holdfast, its networks and its addresses, and say what to do; it changes nothing',
  common: { output: true },
  read: (_args, _given, { output }) => output,
  run: (output, { terminal, connect }) =>
    connect(async ({ client }) => {
      const observed = await observeCluster(client, { withData: true, showProgress: terminal.showProgress });
      const findings = diagnose(observed, VERSION);
      printOutput(output, reportOf(findings, observed.refused), terminal.print);
      return findings.some(isError) ? ExitCode.unhealthy : ExitCode.done;
    }),
});
