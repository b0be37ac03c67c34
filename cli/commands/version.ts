import { VERSION } from '../../process/version.js';
import { defineCommand } from '../command.js';
import { componentsOf } from '../doctor/components.js';
import { observeCluster } from '../doctor/observe.js';
import { ExitCode } from '../exit-code.js';
import { printOutput } from '../output.js';

export const SHOW_VERSION = defineCommand({
  usage: 'version',
  description: 'print the versions of this program and of the processes in the cluster',
  options: [{ flags: '--client', description: 'do not ask the cluster' }],
  common: { output: true },
  read: (_args, { client }: { client?: true }, { output }) => ({ isClientOnly: client === true, output }),
  run: async ({ isClientOnly, output }, { terminal, connect }) => {
    const processes = isClientOnly
      ? undefined
      : await connect(async ({ client }) => {
          const observed = await observeCluster(client, { withData: false, showProgress: terminal.showProgress });
          return componentsOf(observed).map(({ name, versions }) => ({ name, versions }));
        });
    const lines = [
      `kubectl holdfast: ${VERSION}`,
      ...(processes ?? []).map(({ name, versions }) => `${name}: ${versions.join(', ')}`),
    ];
    printOutput(output, { data: { client: VERSION, processes }, lines: () => lines }, terminal.print);
    return ExitCode.done;
  },
});
