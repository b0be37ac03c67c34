import { VERSION } from '../../process/version.js';
import { defineCommand } from '../command.js';
import { observeCluster } from '../doctor/observe.js';
import { ExitCode } from '../exit-code.js';
import { type ComponentState, componentsOf } from '../installation.js';
import { printOutput } from '../output.js';

export const SHOW_VERSION = defineCommand({
  usage: 'version',
  description: 'print the versions of this program and of the processes in the cluster',
  options: [{ flags: '--client', description: 'do not ask the cluster' }],
  common: { output: true },
  read: (_args, { client }: { client?: true }, { output }) => ({ isClientOnly: client === true, output }),
  run: async ({ isClientOnly, output }, { terminal, connect }) => {
    const print = (processes?: readonly Pick<ComponentState, 'name' | 'versions'>[]) => {
      const lines = [
        `kubectl holdfast: ${VERSION}`,
        ...(processes ?? []).map(({ name, versions }) => `${name}: ${versions.join(', ')}`),
      ];
      printOutput(output, { data: { client: VERSION, processes }, lines: () => lines }, terminal.print);
    };
    if (isClientOnly) {
      print();
      return ExitCode.done;
    }
    const observed = await connect(({ client }) =>
      observeCluster(client, { withData: false, showProgress: terminal.showProgress }),
    ).catch((error: unknown) => {
      // as kubectl does: a report of the error needs the version of this program
      print();
      throw error;
    });
    print(componentsOf(observed).map(({ name, versions }) => ({ name, versions })));
    return ExitCode.done;
  },
});
