import { type Command, CommanderError, type OutputConfiguration } from 'commander';

/** Arguments, or what stands for them in the environment, that cannot be. The message names them and what is allowed. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
  /** What prints the help of the command that was called, where that is known. */
  readonly helpCommand: string | undefined;

  constructor(message: string, { cause, see }: { readonly cause?: unknown; readonly see?: string } = {}) {
    super(message, { cause });
    this.helpCommand = see;
  }
}

/**
 * Runs the action of the command that the arguments name.
 * @param args those after the program's name
 * @returns false where help or version was asked for and printed
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

/** The command that the arguments begin with, as far as there is one. */
function findCalledCommand(program: Command, args: readonly string[]): { command: Command; path: readonly string[] } {
  const [name, ...rest] = args;
  const sub = program.commands.find((command) => command.name() === name);
  if (sub === undefined) return { command: program, path: [program.name()] };
  const { command, path } = findCalledCommand(sub, rest);
  return { command, path: [program.name(), ...path] };
}

function messageFor(error: CommanderError | UsageError, { commands }: Command): string {
  // of a command without its subcommand commander prints the help and says nothing
  if (error instanceof CommanderError && error.code === 'commander.help') {
    return `name a command; there are: ${commands.map((command) => command.name()).join(', ')}`;
  }
  return error.message.replace(/^error: /, '');
}
