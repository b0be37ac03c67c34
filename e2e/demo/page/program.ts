import type { Client } from '../../../kube/client.js';
import type { WireLocation, Wire } from '../../../bed/network/wire.js';
import type { Command } from './shell.js';

/** The environment in which the commands of a page run. */
export interface Terminal {
  readonly client: Client;
  /** Path of the administrator's kubeconfig. */
  readonly kubeconfig: string;
  /** The namespace of commands that name none. */
  namespace: string;
  /** Undefined: kubectl is not installed, and is emulated. */
  readonly kubectl: Kubectl | undefined;
  /** False if pod networks are simulated. */
  readonly hasNetworks: boolean;
  /** Undefined if the demo has no access to the networks of pods. */
  readonly wire: PodWire | undefined;
}

/** Runs the real kubectl. */
export type Kubectl = (args: readonly string[], input: string | undefined) => Promise<Output>;

export interface PodWire {
  readonly wire: Wire;
  /** The network namespace of a pod. @throws {Error} if the pod has no network */
  locationOf(ref: { namespace: string; name: string }): Promise<WireLocation>;
}

export interface Output {
  readonly text: string;
  readonly succeeded: boolean;
}

/** A parsed command. @throws {Error} with the message of the API server that rejects it */
export type Action = (terminal: Terminal) => Promise<string>;

export interface Program {
  /** The first words of its commands. */
  readonly prefix: string;
  /** It changes nothing, so it may be repeated until its output is as expected. */
  readonly isReadOnly: boolean;
  /** The demo emulates it even if the program is installed. */
  isEmulated(terminal: Terminal): boolean;
  /** @throws {Error} for unknown arguments */
  parse(args: Arguments): Action;
}

/** The words of a command after its prefix. */
export interface Arguments {
  readonly names: readonly string[];
  readonly flags: ReadonlyMap<string, string>;
  /** The words after `--`. */
  readonly podCommand: readonly string[];
  readonly input: string | undefined;
}

/** Flags whose value is the next word. */
const FLAGS_WITH_SEPARATE_VALUE = ['-f', '-l', '-o', '-p', '-c', '--field-selector'];

export function argumentsOf(words: readonly string[], input: string | undefined): Arguments {
  const dashes = words.includes('--') ? words.indexOf('--') : words.length;
  const names: string[] = [];
  const flags = new Map<string, string>();
  for (let at = 0; at < dashes; at++) {
    const word = words[at] ?? '';
    const [flag = '', ...value] = word.split('=');
    if (!word.startsWith('-') || word === '-') names.push(word);
    else flags.set(flag, FLAGS_WITH_SEPARATE_VALUE.includes(word) ? (words[++at] ?? '') : value.join('='));
  }
  return { names, flags, podCommand: words.slice(dashes + 1), input };
}

/** @throws {Error} for a flag that is not in the list */
export function rejectUnknownFlags({ flags }: Arguments, known: readonly string[]): void {
  for (const flag of flags.keys()) {
    if (!known.includes(flag)) throw new Error(`the demo does not support the flag ${flag}, only ${known.join(', ')}`);
  }
}

export function programOf(command: Command, programs: readonly Program[]): Program {
  const line = `${command.words.join(' ')} `;
  const found = programs.find(({ prefix }) => line.startsWith(`${prefix} `));
  if (found === undefined) {
    throw new Error(
      `the demo does not support "${command.text}", only ${programs.map(({ prefix }) => prefix).join(', ')}`,
    );
  }
  return found;
}

export function parseCommand(command: Command, program: Program): Action {
  const rest = command.words.slice(program.prefix.split(' ').length);
  return program.parse(argumentsOf(rest, command.input));
}
