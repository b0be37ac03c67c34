import { describeValue } from '../api/json.js';
import { isNamespaceName, isObjectName } from '../api/meta.js';
import { UsageError } from '../process/read-arguments.js';
import type { Connection } from './cluster-client.js';
import type { ExitCode } from './exit-code.js';
import type { OutputFormat } from './output.js';
import type { Terminal } from './terminal.js';

/** Options that several commands have. They stand before or after the command's name. */
export interface CommonOptions {
  /** Absent: that of the context. */
  readonly namespace?: string;
  readonly allNamespaces: boolean;
  readonly output: OutputFormat;
}

/** What a command works with. */
export interface CommandContext {
  readonly terminal: Terminal;
  /** Calls a function with the cluster of the options, and disconnects afterwards. */
  readonly connect: <T>(run: (cluster: Connection) => Promise<T>) => Promise<T>;
}

interface CommandText {
  /** The name with the arguments, as commander writes them: `reserve <pool> <address>`. */
  readonly usage: string;
  readonly description: string;
  readonly options?: readonly CommandOption[];
  /** Which of {@link CommonOptions} it has. With `namespace`, says what the namespace is of. */
  readonly common?: { readonly namespace?: string; readonly allNamespaces?: true; readonly output?: true };
}

interface CommandOption {
  /** As commander writes them: `--mac <address>`. */
  readonly flags: string;
  readonly description: string;
  readonly choices?: readonly string[];
  /** It may be given several times: its values are a list. */
  readonly isList?: true;
}

/** A command. Adding one takes a definition in `cli/commands/`, and a line in `cli/commands/all.ts`. */
interface CommandDefinition<Given, Request> extends CommandText {
  /**
   * Checks the command line, before the command connects to a cluster.
   * @param given its own options, by their names in camel case
   * @throws {UsageError}
   */
  readonly read: (args: readonly string[], given: Given, common: CommonOptions) => Request;
  readonly run: (request: Request, context: CommandContext) => Promise<ExitCode>;
}

/** A command whose types nobody needs to know. */
export interface Command extends CommandText {
  readonly prepare: (args: readonly string[], given: object, common: CommonOptions) => PreparedCommand;
}

export interface PreparedCommand {
  readonly request: unknown;
  readonly run: (context: CommandContext) => Promise<ExitCode>;
}

export function defineCommand<Given extends object, Request>({
  read,
  run,
  ...text
}: CommandDefinition<Given, Request>): Command {
  return {
    ...text,
    prepare: (args, given, common) => {
      const request = read(args, given as Given, common);
      return { request, run: (context) => run(request, context) };
    },
  };
}

/** Rejects what no namespace is called. @throws {UsageError} */
export function namespaceName(text: string | undefined, flag: string): string | undefined {
  const name = nonEmptyName(text, flag);
  if (name === undefined || isNamespaceName(name)) return name;
  throw new UsageError(
    `${flag}: ${describeValue(name)} is not a name of a namespace: write lower-case letters, digits and "-", and begin and end with a letter or digit`,
  );
}

/** Rejects what no object is called, such as `lab/vm1`. @param what begins the message @throws {UsageError} */
export function requireObjectName(text: string, what: string): void {
  if (isObjectName(text)) return;
  const end = 'begin and end with a letter or digit';
  const remedy = text.includes('/') ? `${end}, and write the namespace with -n` : `and ${end}`;
  throw new UsageError(
    `${what}: ${describeValue(text)} is not a name: write lower-case letters, digits, "-" and ".", ${remedy}`,
  );
}

/** Rejects an empty name: an unset variable of a script must not select everything. @throws {UsageError} */
export function nonEmptyName(text: string | undefined, flag: string): string | undefined {
  if (text === '') throw new UsageError(`${flag}: "" is not a name: write a name, or leave the flag out`);
  return text;
}
