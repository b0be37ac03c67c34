import { type Command, CommanderError, type OutputConfiguration } from 'commander';

/** Invalid arguments or environment variables. The message names them and the allowed values. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
  /** The command line that prints the help for the called command, if known. */
  readonly helpCommand: string | undefined;

  constructor(message: string, { cause, see }: { readonly cause?: unknown; readonly see?: string } = {}) {
    super(message, { cause });
    this.helpCommand = see;
  }
}

/**
 * Runs the action of the command that the arguments name.
 * @param args the arguments after the program's name
 * @returns false if help or version was printed
 * @throws {UsageError}
 */
export function readArguments(program: Command, args: readonly string[], output: OutputConfiguration): boolean {
  for (const command of withDescendants(program)) {
    command.exitOverride().configureOutput({ ...output, writeErr: () => undefined });
  }
  try {
    program.parse(args, { from: 'user' });
  } catch (error) {
    if (error instanceof CommanderError && error.exitCode === 0) return false;
    if (!(error instanceof CommanderError || error instanceof UsageError)) throw error;
    const { command, path } = findCalledCommand(program, args);
    throw new UsageError(messageFor(error, command), { cause: error, see: `${path.join(' ')} --help` });
  }
  return true;
}

function withDescendants(command: Command): Command[] {
  return [command, ...command.commands.flatMap(withDescendants)];
}

/** Returns the command that the first arguments name. */
function findCalledCommand(program: Command, args: readonly string[]): { command: Command; path: readonly string[] } {
  const [name, ...rest] = args;
  const sub = program.commands.find((command) => command.name() === name);
  if (sub === undefined) return { command: program, path: [program.name()] };
  const { command, path } = findCalledCommand(sub, rest);
  return { command, path: [program.name(), ...path] };
}

function messageFor(error: CommanderError | UsageError, { commands }: Command): string {
  // if a subcommand is missing, commander prints the help without a message
  if (error instanceof CommanderError && error.code === 'commander.help') {
    return `a command is missing; commands: ${commands.map((command) => command.name()).join(', ')}`;
  }
  return error.message.replace(/^error: /, '');
}
