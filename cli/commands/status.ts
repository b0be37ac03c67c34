import { VERSION } from '../../process/version.js';
import { defineCommand } from '../command.js';
import { diagnose } from '../doctor/diagnose.js';
import { observeCluster } from '../doctor/observe.js';
import { ExitCode } from '../exit-code.js';
import { printOutput } from '../output.js';
import { formatStatus, statusOf } from '../status.js';

export const STATUS = defineCommand({
  usage: 'status',
  description: 'show versions, processes, leaders, webhooks, certificates and policies; exit code 3 if not healthy',
  common: { output: true },
  read: (_args, _given, { output }) => output,
  run: (output, { terminal, connect }) =>
    connect(async ({ client }) => {
      const observed = await observeCluster(client, { withData: false, showProgress: terminal.showProgress });
      const status = statusOf(observed, diagnose(observed, VERSION), VERSION);
      printOutput(output, formatStatus(status), terminal.print);
      return status.healthy ? ExitCode.done : ExitCode.unhealthy;
    }),
});
