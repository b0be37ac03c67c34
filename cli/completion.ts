import type { Command as Program, Option } from 'commander';
import type { Client } from '../kube/client.js';
import type { Resource } from '../kube/resource.js';
import type { ClusterOptions } from './cluster-client.js';
import { ADDRESS_POOLS, NAMESPACES, VIRTUAL_MACHINES } from '../kube/resources.js';

/** A user waits for the answer of a key. */
export const COMPLETION_TIMEOUT_MS = 2_000;
const MAX_NAMES = 1_000;
/** ShellCompDirectiveNoFileComp of cobra, which kubectl reads: the shell does not add names of files. */
const NO_FILES = ':4';
/** What is completed with names of objects, by the placeholders of arguments and options. */
const RESOURCES: Readonly<Record<string, Resource>> = {
  namespace: NAMESPACES,
  pool: ADDRESS_POOLS,
  vm: VIRTUAL_MACHINES,
};

interface CompletionCluster {
  readonly client: Pick<Client, 'pages'>;
  readonly home: string;
}
export type ConnectForCompletion = (
  options: ClusterOptions,
  run: (cluster: CompletionCluster) => Promise<void>,
) => Promise<void>;

/**
 * Answers a request of a shell, in the format of cobra: a line for each value, then a directive.
 * Errors are silent, and names that arrive after the signal aborts are left out, because the user only pressed a key.
 */
export async function answerCompletion(
  program: Program,
  words: readonly string[],
  connect: ConnectForCompletion,
  signal: AbortSignal,
): Promise<string> {
  const { candidates, placeholder = '', prefix, current, given } = complete(program, words);
  const resource = Object.hasOwn(RESOURCES, placeholder) ? RESOURCES[placeholder] : undefined;
  const names = resource === undefined ? [] : await namesOf(resource, given, connect, signal);
  const matching = [...candidates, ...names].filter((candidate) => candidate.startsWith(current));
  return [...matching.map((candidate) => `${prefix}${candidate}`), NO_FILES, ''].join('\n');
}

async function namesOf(
  resource: Resource,
  given: GivenOptions,
  connect: ConnectForCompletion,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const names: string[] = [];
  const read = connect(given, async ({ client, home }) => {
    const namespace = resource.namespaced ? (given.namespace ?? home) : undefined;
    for await (const { items } of client.pages(resource, { namespace, metadataOnly: true, signal })) {
      names.push(...items.map(({ metadata }) => metadata.name));
      if (names.length >= MAX_NAMES) return;
    }
  }).catch(() => undefined);
  // the program that gives credentials may hang, or ask for a password
  const ended = new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
  await Promise.race([read, ended]);
  return names.slice(0, MAX_NAMES);
}

interface Completion {
  /** Values, each perhaps with a tab and a description. */
  readonly candidates: readonly string[];
  /** Of the argument or option. The names of some objects are candidates too. */
  readonly placeholder?: string | undefined;
  /** What the shell expects before each value: `--output=`. */
  readonly prefix: string;
  /** The beginning of the value. */
  readonly current: string;
  readonly given: GivenOptions;
}

/** Options on the command line that have a value, by their names in camel case. */
interface GivenOptions extends ClusterOptions {
  readonly namespace?: string;
}

/**
 * Completes the last word of a command line.
 * @param words the arguments after the program's name; the last one is the one to complete, and may be empty
 */
function complete(program: Program, words: readonly string[]): Completion {
  const read = readWords(program, words.slice(0, -1));
  const { command, pending, given } = read;
  // PowerShell before 7.3 passes no empty argument, so its script sends two quotes
  const current = (words.at(-1) ?? '').replace(/^""$/, '');
  // bash splits words at "="
  if (pending !== undefined) return valuesOf(pending, { prefix: '', current: current === '=' ? '' : current, given });
  const [, flag = '', value = ''] = /^(--[^=]+)=(.*)$/.exec(current) ?? [];
  const inline = flag === '' ? undefined : findOption(command, flag);
  if (inline !== undefined) return valuesOf(inline, { prefix: `${flag}=`, current: value, given });
  const found = current.startsWith('-') ? { candidates: optionsOf(command) } : wordsOf(read);
  return { ...found, prefix: '', current, given };
}

/** Names of commands, or values of an argument. */
function wordsOf({ command, position }: ReadWords): Pick<Completion, 'candidates' | 'placeholder'> {
  if (command.commands.length > 0)
    return { candidates: command.commands.map((each) => `${each.name()}\t${each.description()}`) };
  const argument = command.registeredArguments[position];
  return { candidates: argument?.argChoices ?? [], placeholder: argument?.name() };
}

interface ReadWords {
  command: Program;
  /** Of the next argument. */
  position: number;
  /** The option whose value is next. */
  pending?: Option | undefined;
  given: GivenOptions;
}

function readWords(program: Program, words: readonly string[]): ReadWords {
  const read: ReadWords = { command: program, position: 0, given: {} };
  for (const word of words) {
    if (read.pending !== undefined) {
      if (word === '=') continue;
      read.given = withValue(read.given, read.pending, word);
      read.pending = undefined;
    } else if (word.startsWith('-')) {
      const [flag = '', value] = word.split('=', 2);
      const option = findOption(read.command, flag);
      if (option?.required !== true) continue;
      if (value === undefined) read.pending = option;
      else read.given = withValue(read.given, option, value);
    } else {
      const next = read.command.commands.find((each) => each.name() === word);
      if (next === undefined) read.position++;
      else read.command = next;
    }
  }
  return read;
}

/** An option that may be given several times has a list. */
function withValue(given: GivenOptions, option: Option, value: string): GivenOptions {
  const name = option.attributeName();
  return { ...given, [name]: name === 'asGroup' ? [...(given.asGroup ?? []), value] : value };
}

function findOption(command: Program, flag: string): Option | undefined {
  for (let at: Program | null = command; at !== null; at = at.parent) {
    const found = at.options.find(({ short, long }) => flag === short || flag === long);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** The program's own options stand before a command. A command lists those that it has. */
function optionsOf({ options }: Program): string[] {
  const own = options.flatMap(({ long, description }) => (long ? [`${long}\t${description}`] : []));
  return [...own, '--help\tprint this help'];
}

function valuesOf(option: Option, rest: Pick<Completion, 'prefix' | 'current' | 'given'>): Completion {
  const placeholder = /<([\w-]+)>/.exec(option.flags)?.[1];
  return { candidates: option.argChoices ?? [], placeholder, ...rest };
}
