import { systemClock } from '../../kube/clock.js';
import { UsageError } from '../../process/read-arguments.js';
import { defineCommand } from '../command.js';
import { ExitCode } from '../exit-code.js';
import { printOutput } from '../output.js';
import { traceVirtualMachine } from '../trace/trace.js';

export const TRACE_VM = defineCommand({
  usage: 'trace vm <vm>',
  description: 'show everything between a VM and its addresses as a tree: what is wrong, and what to do',
  common: { namespace: 'namespace of the VM', output: true },
  read: ([name = ''], _given, { namespace, output }) => {
    if (name === '') throw new UsageError('the name of the VM is empty: write a name');
    return { name, output, ...(namespace !== undefined && { namespace }) };
  },
  run: ({ name, namespace, output }, { terminal, connect }) =>
    connect(async ({ client, home }) => {
      const isUnicode = terminal.columns !== undefined;
      const vm = { namespace: namespace ?? home, name };
      const story = await traceVirtualMachine(vm, { client, clock: systemClock, isUnicode });
      printOutput(output, story.output, terminal.print);
      return story.isWrong ? ExitCode.unhealthy : ExitCode.done;
    }),
});
