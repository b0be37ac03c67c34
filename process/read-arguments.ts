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
  let called = program;
  program.hook('preAction', (_program, command) => {
    called = command;
  });
  for (const command of withDescendants(program)) {
    command.configureOutput({ ...output, writeErr: () => undefined }).exitOverride((error) => {
      called = command;
      throw error;
    });
  }
  try {
    program.parse(args, { from: 'user' });
  } catch (error) {
    if (error instanceof CommanderError && error.exitCode === 0) return false;
    if (!(error instanceof CommanderError || error instanceof UsageError)) throw error;
    throw new UsageError(messageFor(error, called), { cause: error, see: `${pathOf(called)} --help` });
  }
  return true;
}

function withDescendants(command: Command): Command[] {
  return [command, ...command.commands.flatMap(withDescendants)];
}

function pathOf(command: Command): string {
  return command.parent === null ? command.name() : `${pathOf(command.parent)} ${command.name()}`;
}

function messageFor(error: CommanderError | UsageError, { args, commands }: Command): string {
  // if a subcommand is missing, or the one to help with is unknown, commander prints the help without a message
  if (error instanceof CommanderError && error.code === 'commander.help') {
    const unknown = args.at(-1);
    const problem = unknown === undefined ? 'a command is missing' : `unknown command '${unknown}'`;
    return `${problem}; commands: ${commands.map((command) => command.name()).join(', ')}`;
  }
  return error.message.replace(/^error: /, '');
}
