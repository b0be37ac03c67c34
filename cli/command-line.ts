import { Command, type OutputConfiguration } from 'commander';
import { UsageError, readArguments } from '../process/read-arguments.js';
import { VERSION } from '../process/version.js';
import type { IpsOptions } from './ips.js';
import { CommandError } from './command-error.js';
import { type Reservation, checkReservation } from './reserve.js';
import type { ClusterOptions } from './cluster-client.js';
import { WHEREABOUTS_NAMESPACE, type MigrateOptions } from './whereabouts/migrate.js';

/** What the user asked for. */
export type CliCommand = { readonly cluster: ClusterOptions } & (
  | { readonly command: 'migrate whereabouts'; readonly options: MigrateOptions }
  | { readonly command: 'reserve' | 'unreserve'; readonly reservation: Reservation }
  | { readonly command: 'ips'; readonly options: IpsOptions }
);

/** Options as commander gives them. */
interface ParsedOptions extends ClusterOptions {
  readonly apply?: true;
  readonly namespace?: string;
  readonly network?: string;
  readonly skipConflicts?: true;
  readonly output?: string;
  readonly mac?: string;
  readonly allNamespaces?: true;
}

/**
 * Reads the arguments after the program's name.
 * @returns undefined where help or version was asked for and printed
 * @throws {UsageError}
 */
export function readCommandLine(args: readonly string[], output: OutputConfiguration = {}): CliCommand | undefined {
  let request: CliCommand | undefined;
  const program = buildProgram((made) => (request = made));
  return readArguments(program, args, output) ? request : undefined;
}

function buildProgram(onCommand: (request: CliCommand) => void): Command {
  const program = new Command('kubectl holdfast')
    .description('Persistent IP addresses for KubeVirt virtual machines: what people do with them now and then.')
    .version(VERSION, '--version', 'print the version')
    .helpOption('-h, --help', 'print this help')
    .helpCommand('help [command]', 'print the help of a command');
  addMigrateCommand(program, onCommand);
  addReserveCommands(program, onCommand);
  addIpsCommand(program, onCommand);
  return program;
}

function addMigrateCommand(program: Command, onCommand: (request: CliCommand) => void): void {
  const migrate = program.command('migrate').description('move over from another IPAM');
  addClusterOptions(migrate.command('whereabouts'))
    .description('lease to pods what whereabouts has given them; shows the plan, and writes nothing without --apply')
    .option('--apply', 'make the pools and the leases of the plan')
    .option('--namespace <name>', 'where whereabouts keeps its IPPools', WHEREABOUTS_NAMESPACE)
    .option('--network <name>', 'of this CNI network, and of those that share its addresses')
    .option('--skip-conflicts', 'with --apply: pass over what has conflicts; without it nothing is written then')
    .option('-o, --output <format>', 'json')
    .action((given: ParsedOptions) => {
      const namespace = nonEmptyName(given.namespace, '--namespace') ?? WHEREABOUTS_NAMESPACE;
      const network = nonEmptyName(given.network, '--network');
      if (given.skipConflicts === true && given.apply !== true) {
        throw new UsageError('--skip-conflicts is of use with --apply alone: a plan names its conflicts');
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
    .description('keep an address for a MAC address, or from everybody')
    .option('--mac <address>', 'of the interface that shall have it, like 02:00:00:00:00:01; without it nobody gets it')
    .action((pool: string, address: string, given: ParsedOptions) => {
      const reservation = checkedReservation({ pool, address, ...(given.mac !== undefined && { mac: given.mac }) });
      onCommand({ command: 'reserve', cluster: clusterOptionsOf(given), reservation });
    });
  addClusterOptions(program.command('unreserve <pool> <address>'))
    .description('let go what was reserved')
    .action((pool: string, address: string, given: ParsedOptions) => {
      onCommand({
        command: 'unreserve',
        cluster: clusterOptionsOf(given),
        reservation: checkedReservation({ pool, address }),
      });
    });
}

/** What no cluster is needed for is said before one is looked for. */
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
    .description('who has which addresses: VMs, and pods without claims')
    .option('-n, --namespace <name>', 'of the VMs and pods; default: that of the context')
    .option('-A, --all-namespaces', 'all of them')
    .option('-o, --output <format>', 'json')
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

/** Empty is what a variable of a script is that was never set: it must not stand for all. */
function nonEmptyName(text: string | undefined, flag: string): string | undefined {
  if (text === '') throw new UsageError(`${flag}: "" cannot be used: write a name, or leave it out`);
  return text;
}

function isJson({ output }: ParsedOptions): boolean {
  if (output === undefined || output === 'json') return output === 'json';
  throw new UsageError(`-o: "${output}" cannot be used: there is json; leave it out for text`);
}

function addClusterOptions(command: Command): Command {
  return command
    .option('--kubeconfig <path>', 'where the cluster is; default: KUBECONFIG, ~/.kube/config')
    .option('--context <name>', 'of the kubeconfig; default: its current one');
}

function clusterOptionsOf({ kubeconfig, context }: ParsedOptions): ClusterOptions {
  return { ...(kubeconfig !== undefined && { kubeconfig }), ...(context !== undefined && { context }) };
}
