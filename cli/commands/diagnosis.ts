import { VERSION } from '../../process/version.js';
import { systemClock } from '../../kube/clock.js';
import { UsageError } from '../../process/read-arguments.js';
import { defineCommand } from '../command.js';
import { diagnose } from '../doctor/diagnose.js';
import { isError, reportOf } from '../doctor/finding.js';
import { observeCluster } from '../doctor/observe.js';
import { ExitCode } from '../exit-code.js';
import { type ComponentState, componentsOf } from '../installation.js';
import { printOutput } from '../output.js';
import { formatStatus, statusOf } from '../status.js';
import { traceVirtualMachine } from '../trace/trace.js';

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
