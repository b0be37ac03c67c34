import { Argument, Command as Program, Option, type OutputConfiguration } from 'commander';
import { omitUndefined } from '../api/json.js';
import { UsageError, readArguments } from '../process/read-arguments.js';
import { VERSION } from '../process/version.js';
import type { ClusterOptions } from './cluster-client.js';
import { type Command, type CommonOptions, type PreparedCommand, namespaceName, nonEmptyName } from './command.js';
import { COMMANDS, GROUPS } from './commands/all.js';
import { EXIT_CODES_HELP } from './exit-code.js';
import { OUTPUT_FORMATS, type OutputFormat } from './output.js';

/** A parsed command line. */
interface CommandLine extends PreparedCommand {
  /** The name of the command, such as `migrate whereabouts`. */
  readonly command: string;
  readonly cluster: ClusterOptions;
}

/** The options of {@link CommonOptions} and {@link ClusterOptions}, as commander parses them. */
interface GivenOptions extends ClusterOptions {
  readonly namespace?: string;
  readonly allNamespaces?: true;
  readonly output?: OutputFormat;
}

const CLUSTER_FLAGS = [
  ['--kubeconfig <path>', 'path of the kubeconfig; default: KUBECONFIG, or ~/.kube/config'],
  ['--context <name>', 'context of the kubeconfig; default: the current one'],
  ['--as <user>', 'user whose rights to use, as for kubectl'],
  ['--as-group <group>', 'with --as: group whose rights to use; may be given several times'],
] as const;
const COMMON_FLAGS = {
  namespace: ['-n, --namespace <namespace>', 'namespace; default: that of the context'],
  allNamespaces: ['-A, --all-namespaces', 'all namespaces'],
  output: ['-o, --output <format>', 'output format; default: table'],
} as const;

/**
 * Reads the arguments after the program's name.
 * @returns undefined if help or version was requested and printed
 * @throws {UsageError}
 */
export function readCliCommandLine(args: readonly string[], output: OutputConfiguration = {}): CommandLine | undefined {
  let parsed: CommandLine | undefined;
  const program = buildProgram((made) => (parsed = made));
  // kubectl reads -n=lab as -n lab, and commander as the namespace =lab
  const read = args.map((arg) => arg.replace(/^(-[a-zA-Z])=/, '$1'));
  return readArguments(program, args.length === 0 ? ['--help'] : read, output) ? parsed : undefined;
}

/** Returns the names of all flags of all commands, without dashes. */
export function flagsOfCommands(): string[] {
  const flagsOf = ({ options, commands }: Program): string[] => [
    ...options.flatMap(({ long }) => long?.replace(/^--/, '') ?? []),
    ...commands.flatMap(flagsOf),
  ];
  return flagsOf(buildProgram(() => undefined));
}

/** Builds the parser. Completion and the reference page read it too. */
export function buildProgram(onCommand: (parsed: CommandLine) => void): Program {
  const program = new Program('kubectl holdfast')
    .description(
      'Show, reserve and trace the persistent IP addresses of KubeVirt virtual machines, and look after Holdfast.',
    )
    .version(VERSION, '--version', 'print the version')
    .helpOption('-h, --help', 'print this help')
    .helpCommand('help [command]', 'print the help of a command')
    .addHelpText('afterAll', `\n${EXIT_CODES_HELP}`);
  // commander reads the options of the program anywhere on the command line
  for (const [flags, description] of [COMMON_FLAGS.namespace, COMMON_FLAGS.allNamespaces, ...CLUSTER_FLAGS])
    program.addOption(clusterOption(flags, description));
  program.addOption(new Option(...COMMON_FLAGS.output).choices(OUTPUT_FORMATS));
  for (const command of COMMANDS) addCommand(program, command, onCommand);
  return program;
}

function addCommand(program: Program, command: Command, onCommand: (parsed: CommandLine) => void): void {
  const { usage, description, options = [], common = {} } = command;
  const words = usage.split(' ');
  const argumentAt = words.findIndex((word) => /^[<[]/.test(word));
  const names = argumentAt < 0 ? words : words.slice(0, argumentAt);
  const own = names.reduce(subcommandOf, program).description(description);
  for (const argument of words.slice(names.length)) own.addArgument(new Argument(argument));
  for (const { flags, description: text, choices, isList } of options) {
    const option = new Option(flags, text);
    if (isList === true) asList(option);
    own.addOption(choices === undefined ? option : option.choices(choices));
  }
  if (common.namespace !== undefined) own.option(COMMON_FLAGS.namespace[0], namespaceText(common.namespace));
  if (common.allNamespaces === true) own.option(...COMMON_FLAGS.allNamespaces);
  if (common.output === true) own.addOption(new Option(...COMMON_FLAGS.output).choices(OUTPUT_FORMATS));
  for (const [flags, text] of CLUSTER_FLAGS) own.addOption(clusterOption(flags, text));
  own.action(() => {
    const given = program.opts<GivenOptions>();
    const args = own.processedArgs.filter((argument) => typeof argument === 'string');
    const prepared = command.prepare(args, own.opts(), commonOptionsOf(given, command));
    onCommand({ command: names.join(' '), cluster: clusterOptionsOf(given), ...prepared });
  });
}

function clusterOption(flags: string, description: string): Option {
  const option = new Option(flags, description);
  return flags.startsWith('--as-group') ? asList(option) : option;
}

function asList(option: Option): Option {
  return option.argParser<string[] | undefined>((value, before) => [...(before ?? []), value]);
}

function subcommandOf(parent: Program, name: string): Program {
  const found = parent.commands.find((command) => command.name() === name);
  return found ?? parent.command(name).description(GROUPS[name] ?? '');
}

function namespaceText(what: string): string {
  return what.includes('default:') ? what : `${what}; default: that of the context`;
}

/** @throws {UsageError} if the command does not have an option that is given */
function commonOptionsOf({ namespace, allNamespaces, output }: GivenOptions, command: Command): CommonOptions {
  const { common = {} } = command;
  const unknown = [
    ...(namespace !== undefined && common.namespace === undefined ? ['-n'] : []),
    ...(allNamespaces === true && common.allNamespaces !== true ? ['-A'] : []),
    ...(output !== undefined && common.output !== true ? ['-o'] : []),
  ];
  if (unknown.length > 0) throw new UsageError(`this command has no option ${unknown.join(', ')}`);
  namespaceName(namespace, '-n');
  return omitUndefined({ namespace, allNamespaces: allNamespaces === true, output: output ?? 'table' });
}

/** @throws {UsageError} */
function clusterOptionsOf({ kubeconfig, context, as, asGroup }: GivenOptions): ClusterOptions {
  if (asGroup !== undefined && as === undefined) throw new UsageError('--as-group needs --as: name a user too');
  nonEmptyName(as, '--as');
  return omitUndefined({ kubeconfig, context, as, asGroup });
}
