import { systemClock } from '../../kube/clock.js';
import { UsageError } from '../../process/read-arguments.js';
import { VERSION } from '../../process/version.js';
import { bundleName, writeBundle } from '../bundle/write-bundle.js';
import type { Connection } from '../cluster-client.js';
import { addClusterFlags } from '../cluster-flags.js';
import { defineCommand, nonEmptyName, requireObjectName } from '../command.js';
import { diagnose, isUnchecked } from '../doctor/diagnose.js';
import { isError, reportOf } from '../doctor/finding.js';
import { observeCluster } from '../doctor/observe.js';
import { repeatUntil } from '../doctor/repeat-until.js';
import { ExitCode } from '../exit-code.js';
import { type ComponentState, componentsOf } from '../installation.js';
import { count, printOutput } from '../output.js';
import { formatStatus, statusOf } from '../status.js';
import type { Terminal } from '../terminal.js';
import { traceVirtualMachine } from '../trace/trace.js';

const WAIT_SECONDS = 300;
const WAIT_OPTIONS = [
  { flags: '--wait', description: 'wait until there is no error, and then print' },
  { flags: '--wait-duration <duration>', description: 'with --wait: how long at most, like 90s or 10m; default: 5m' },
];

interface GivenWaitOptions {
  readonly wait?: true;
  readonly waitDuration?: string;
}

/** @returns how long to wait; 0: not at all */
function readWait({ wait, waitDuration }: GivenWaitOptions): number {
  if (waitDuration !== undefined && wait !== true) throw new UsageError('--wait-duration needs --wait');
  if (wait !== true) return 0;
  return 1000 * (waitDuration === undefined ? WAIT_SECONDS : secondsOf('--wait-duration', waitDuration));
}

/** Observes and diagnoses, again and again until there is no error or the time is over. */
async function diagnoseFor(
  waitMs: number,
  { client, home, clusterFlags }: Connection,
  { showProgress, printStatus }: Terminal,
) {
  const last = await repeatUntil(waitMs, systemClock, async () => {
    const observed = await observeCluster(client, { withData: true, home, showProgress });
    const findings = addClusterFlags(diagnose(observed, VERSION), clusterFlags);
    const errors = findings.filter(isError).length;
    if (errors > 0) showProgress(`waiting: ${count(errors, 'error')}…`);
    // a user without rights would wait for nothing
    const isEnd = errors === 0 || isUnchecked(observed);
    return { isEnd, value: { observed, findings, errorsLeft: isEnd ? 0 : errors } };
  });
  if (waitMs > 0 && last.errorsLeft > 0)
    printStatus(`timed out after ${waitMs / 1000} s with ${count(last.errorsLeft, 'error')}`);
  return last;
}

export const STATUS = defineCommand({
  usage: 'status',
  description:
    'show versions, processes, leaders, webhooks, certificates and policies, and what the doctor finds; exit code 3 if not healthy',
  options: WAIT_OPTIONS,
  common: { output: true },
  read: (_args, given: GivenWaitOptions, { output }) => ({ waitMs: readWait(given), output }),
  run: ({ waitMs, output }, { terminal, connect }) =>
    connect(async (cluster) => {
      const { observed, findings } = await diagnoseFor(waitMs, cluster, terminal);
      const status = statusOf(observed, findings, VERSION);
      printOutput(output, formatStatus(status), terminal.print);
      if (!status.checked) return ExitCode.unchecked;
      return status.healthy ? ExitCode.done : ExitCode.unhealthy;
    }),
});

export const DOCTOR = defineCommand({
  usage: 'doctor',
  description:
    'find what is wrong with Holdfast, its networks and its addresses, and say what to do; it changes nothing',
  options: WAIT_OPTIONS,
  common: { output: true },
  read: (_args, given: GivenWaitOptions, { output }) => ({ waitMs: readWait(given), output }),
  run: ({ waitMs, output }, { terminal, connect }) =>
    connect(async (cluster) => {
      const { observed, findings } = await diagnoseFor(waitMs, cluster, terminal);
      printOutput(output, reportOf(findings, observed, isUnchecked(observed)), terminal.print);
      if (isUnchecked(observed)) return ExitCode.unchecked;
      return findings.some(isError) ? ExitCode.unhealthy : ExitCode.done;
    }),
});

export const TRACE_VM = defineCommand({
  usage: 'trace vm <vm>',
  description: 'show everything between a VM and its addresses as a tree: what is wrong, and what to do',
  common: { namespace: 'namespace of the VM', output: true },
  read: ([name = ''], _given, { namespace, output }) => {
    if (name === '') throw new UsageError('the name of the VM is empty: write a name');
    requireObjectName(name, 'the VM');
    return { name, output, ...(namespace !== undefined && { namespace }) };
  },
  run: ({ name, namespace, output }, { terminal, connect }) =>
    connect(async ({ client, home, clusterFlags }) => {
      const isUnicode = terminal.columns !== undefined;
      const vm = { namespace: namespace ?? home, name };
      const story = await traceVirtualMachine(vm, { client, clock: systemClock, isUnicode, clusterFlags });
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
    const observed = await connect(({ client, home }) =>
      observeCluster(client, { withData: false, home, showProgress: terminal.showProgress }),
    ).catch((error: unknown) => {
      // as kubectl does: a report of the error needs the version of this program
      print();
      throw error;
    });
    for (const refused of observed.workloads ? [] : observed.refused) terminal.printStatus(refused);
    print(observed.workloads && componentsOf(observed).map(({ name, versions }) => ({ name, versions })));
    return ExitCode.done;
  },
});

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
    options: { namespace, sinceSeconds: since === undefined ? undefined : secondsOf('--since', since) },
  }),
  run: ({ file, options }, { terminal, connect }) =>
    connect(async (cluster) => {
      const now = systemClock.wall();
      const path = file ?? `${bundleName(now)}.tar.gz`;
      const target = path === '-' ? { stream: process.stdout } : { file: path };
      const { missing, isUnchecked } = await writeBundle(cluster, target, options, {
        now,
        showProgress: terminal.showProgress,
      });
      for (const line of missing) terminal.printStatus(line);
      if (path !== '-') terminal.print(`wrote ${path}`);
      return isUnchecked ? ExitCode.unchecked : ExitCode.done;
    }),
});

function secondsOf(flag: string, text: string): number {
  const [, number = '', unit = ''] = /^(\d{1,6})([smhd])$/.exec(text) ?? [];
  const seconds = Number(number) * (SECONDS[unit] ?? 0);
  if (seconds === 0) throw new UsageError(`${flag}: "${text}" is not a duration: write it like 30m, 2h or 1d`);
  return seconds;
}
