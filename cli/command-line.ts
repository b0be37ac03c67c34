import { Command, type OutputConfiguration } from 'commander';
import { UsageError, readArguments } from '../process/read-arguments.js';
import { VERSION } from '../process/version.js';
import type { IpsOptions } from './ips.js';
import { CommandError } from './command-error.js';
import { type Reservation, checkReservation } from './reserve.js';
import type { ClusterOptions } from './cluster-client.js';
import type { UninstallOptions } from './uninstall/plan.js';
import { WHEREABOUTS_NAMESPACE, type MigrateOptions } from './whereabouts/migrate.js';

/** A parsed command. */
export type CliCommand = { readonly cluster: ClusterOptions } & (
  | { readonly command: 'migrate whereabouts'; readonly options: MigrateOptions }
  | { readonly command: 'reserve' | 'unreserve'; readonly reservation: Reservation }
  | { readonly command: 'ips'; readonly options: IpsOptions }
  | { readonly command: 'uninstall'; readonly options: UninstallOptions }
);

/** Options as commander parses them. */
interface ParsedOptions extends ClusterOptions {
  readonly apply?: true;
  readonly namespace?: string;
  readonly network?: string;
  readonly skipConflicts?: true;
  readonly output?: string;
  readonly mac?: string;
  readonly allNamespaces?: true;
  readonly everything?: true;
  readonly ignoreRunningPods?: true;
  readonly yes?: true;
  readonly dryRun?: true;
}

/**
 * Reads the arguments after the program's name.
 * @returns undefined if help or version was requested and printed
 * @throws {UsageError}
 */
export function readCommandLine(args: readonly string[], output: OutputConfiguration = {}): CliCommand | undefined {
  let request: CliCommand | undefined;
  const program = buildProgram((made) => (request = made));
  return readArguments(program, args, output) ? request : undefined;
}

/** Returns the names of all flags of all commands, without dashes. */
export function flagsOfCommands(): string[] {
  const flagsOf = ({ options, commands }: Command): string[] => [
    ...options.flatMap(({ long }) => long?.replace(/^--/, '') ?? []),
    ...commands.flatMap(flagsOf),
  ];
  return flagsOf(buildProgram(() => undefined));
}

function buildProgram(onCommand: (request: CliCommand) => void): Command {
  const program = new Command('kubectl holdfast')
    .description(
      'List and reserve the persistent IP addresses of KubeVirt virtual machines, migrate from another IPAM, and uninstall Holdfast.',
    )
    .version(VERSION, '--version', 'print the version')
    .helpOption('-h, --help', 'print this help')
    .helpCommand('help [command]', 'print the help of a command');
  addMigrateCommand(program, onCommand);
  addReserveCommands(program, onCommand);
  addIpsCommand(program, onCommand);
  addUninstallCommand(program, onCommand);
  return program;
}

function addMigrateCommand(program: Command, onCommand: (request: CliCommand) => void): void {
  const migrate = program.command('migrate').description('migrate from another IPAM');
  addClusterOptions(migrate.command('whereabouts'))
    .description(
      'create pools and leases for the addresses that whereabouts has allocated; without --apply, print the plan only',
    )
    .option('--apply', 'create the pools and leases of the plan')
    .option('--namespace <name>', 'namespace of the IPPools of whereabouts', WHEREABOUTS_NAMESPACE)
    .option('--network <name>', 'migrate only this CNI network, and those that share its addresses')
    .option('--skip-conflicts', 'with --apply: skip addresses with conflicts; otherwise a conflict prevents all writes')
    .option('-o, --output <format>', 'output format: json')
    .action((given: ParsedOptions) => {
      const namespace = nonEmptyName(given.namespace, '--namespace') ?? WHEREABOUTS_NAMESPACE;
      const network = nonEmptyName(given.network, '--network');
      if (given.skipConflicts === true && given.apply !== true) {
        throw new UsageError('--skip-conflicts needs --apply: without --apply, the plan only lists the conflicts');
      }
      const options: MigrateOptions = {
        apply: given.apply === true,
        namespace,
        skipConflicts: given.skipConflicts === true,
        json: isJson(given),
        ...(network !== undefined && { network }),
      };
      onCommand({ command: 'migrate whereabouts', cluster: clusterOptionsOf(given), options });
    });
}

function addReserveCommands(program: Command, onCommand: (request: CliCommand) => void): void {
  addClusterOptions(program.command('reserve <pool> <address>'))
    .description('reserve an address for a MAC address, or for no workload at all')
    .option(
      '--mac <address>',
      'MAC address of the interface that gets the address, like 02:00:00:00:00:01; default: the address is never allocated',
    )
    .action((pool: string, address: string, given: ParsedOptions) => {
      const reservation = checkedReservation({ pool, address, ...(given.mac !== undefined && { mac: given.mac }) });
      onCommand({ command: 'reserve', cluster: clusterOptionsOf(given), reservation });
    });
  addClusterOptions(program.command('unreserve <pool> <address>'))
    .description('remove the reservation of an address')
    .action((pool: string, address: string, given: ParsedOptions) => {
      onCommand({
        command: 'unreserve',
        cluster: clusterOptionsOf(given),
        reservation: checkedReservation({ pool, address }),
      });
    });
}

/** Checks the arguments before the command connects to a cluster. */
function checkedReservation(reservation: Reservation): Reservation {
  try {
    checkReservation(reservation);
    return reservation;
  } catch (error) {
    throw error instanceof CommandError ? new UsageError(error.message, { cause: error }) : error;
  }
}

function addIpsCommand(program: Command, onCommand: (request: CliCommand) => void): void {
  addClusterOptions(program.command('ips'))
    .description('list the addresses of VMs, and of pods without claims')
    .option('-n, --namespace <name>', 'namespace of the VMs and pods; default: that of the context')
    .option('-A, --all-namespaces', 'list all namespaces')
    .option('-o, --output <format>', 'output format: json')
    .action((given: ParsedOptions) => {
      const namespace = nonEmptyName(given.namespace, '-n');
      const options: IpsOptions = {
        json: isJson(given),
        allNamespaces: given.allNamespaces === true,
        ...(namespace !== undefined && { namespace }),
      };
      onCommand({ command: 'ips', cluster: clusterOptionsOf(given), options });
    });
}

function addUninstallCommand(program: Command, onCommand: (request: CliCommand) => void): void {
  addClusterOptions(program.command('uninstall'))
    .description(
      'remove the processes, rights and policies of Holdfast; VMs keep running, and pools, leases and claims are kept',
    )
    .option('--everything', 'remove also claims, pools, leases and the kinds of Holdfast')
    .option('--ignore-running-pods', 'with --everything: remove everything although pods use addresses of Holdfast')
    .option('--yes', 'do not ask')
    .option('--dry-run', 'print what would be removed, and remove nothing')
    .action((given: ParsedOptions) => {
      if (given.ignoreRunningPods === true && given.everything !== true) {
        throw new UsageError('--ignore-running-pods needs --everything: otherwise pods keep their addresses anyway');
      }
      const options: UninstallOptions = {
        everything: given.everything === true,
        ignoreRunningPods: given.ignoreRunningPods === true,
        yes: given.yes === true,
        dryRun: given.dryRun === true,
      };
      onCommand({ command: 'uninstall', cluster: clusterOptionsOf(given), options });
    });
}

/** Rejects an empty name: an unset variable of a script must not select everything. */
function nonEmptyName(text: string | undefined, flag: string): string | undefined {
  if (text === '') throw new UsageError(`${flag}: "" is not a name: write a name, or leave the flag out`);
  return text;
}

function isJson({ output }: ParsedOptions): boolean {
  if (output === undefined || output === 'json') return output === 'json';
  throw new UsageError(`-o: "${output}" is not supported: use json, or leave the flag out for text`);
}

function addClusterOptions(command: Command): Command {
  return command
    .option('--kubeconfig <path>', 'path of the kubeconfig; default: KUBECONFIG, or ~/.kube/config')
    .option('--context <name>', 'context of the kubeconfig; default: the current one');
}

function clusterOptionsOf({ kubeconfig, context }: ParsedOptions): ClusterOptions {
  return { ...(kubeconfig !== undefined && { kubeconfig }), ...(context !== undefined && { context }) };
}
