import { type Command, CommanderError, type OutputConfiguration } from 'commander';

/** Arguments, or what stands for them in the environment, that cannot be. The message names them and what is allowed. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
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
    if (!(error instanceof CommanderError)) throw error;
    if (error.exitCode === 0) return false;
    throw new UsageError(usageOf(error), { cause: error });
  }
  return true;
}

function withDescendants(command: Command): Command[] {
  return [command, ...command.commands.flatMap(withDescendants)];
}

function usageOf({ code, message }: CommanderError): string {
  // of a command without its subcommand commander prints the help and says nothing
  return code === 'commander.help' ? 'what is to be done? See --help' : message.replace(/^error: /, '');
}
