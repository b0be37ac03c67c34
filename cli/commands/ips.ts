import { defineCommand } from '../command.js';
import { ExitCode } from '../exit-code.js';
import { listIps } from '../ips.js';
import { printOutput } from '../output.js';

export const IPS = defineCommand({
  usage: 'ips',
  description: 'list the addresses of VMs, and of pods without claims',
  common: { namespace: 'namespace of the VMs and pods', allNamespaces: true, output: true },
  read: (_args, _given, common) => common,
  run: ({ output, ...options }, { terminal, connect }) =>
    connect(async ({ client, home }) => {
      printOutput(output, await listIps(options, client, home), terminal.print);
      return ExitCode.done;
    }),
});
