import type { Client } from '../../../kube/client.js';
import type { WireLocation, Wire } from '../../bed/network/wire.js';
import type { Command } from './shell.js';

/** Where commands of a page are run. */
export interface Terminal {
  readonly client: Client;
  /** Of the cluster's admin. */
  readonly kubeconfig: string;
  /** Of whoever says none. */
  namespace: string;
  /** Undefined: kubectl is not installed here, and what it does is done in its stead. */
  readonly kubectl: Kubectl | undefined;
  /** False where the networks of pods are simulated. */
  readonly hasNetworks: boolean;
  /** Undefined where the demo has no hand in the networks of pods. */
  readonly wire: PodWire | undefined;
}

/** Runs the real one. */
export type Kubectl = (args: readonly string[], input: string | undefined) => Promise<Output>;

export interface PodWire {
  readonly wire: Wire;
  /** Where a pod is on it. @throws {Error} where the pod has no network */
  locationOf(ref: { namespace: string; name: string }): Promise<WireLocation>;
}

export interface Output {
  readonly text: string;
  readonly succeeded: boolean;
}

/** What a command does, once it is understood. @throws {Error} in the words of who refuses it */
export type Action = (terminal: Terminal) => Promise<string>;

export interface Program {
  /** The words with which its commands begin. */
  readonly prefix: string;
  /** It only looks, and may be run again until it sees something. */
  readonly isReadOnly: boolean;
  /** The demo does it itself, even where the program is installed. */
  isEmulated(terminal: Terminal): boolean;
  /** @throws {Error} for arguments that it does not know */
  parse(args: Arguments): Action;
}

/** What follows the words with which a command begins. */
export interface Arguments {
  readonly names: readonly string[];
  readonly flags: ReadonlyMap<string, string>;
  /** What stands behind `--`. */
  readonly podCommand: readonly string[];
  readonly input: string | undefined;
}

/** Flags whose value is a word of its own. */
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

/** @throws {Error} for a flag that is not among those */
export function rejectUnknownFlags({ flags }: Arguments, known: readonly string[]): void {
  for (const flag of flags.keys()) {
    if (!known.includes(flag)) throw new Error(`the flag ${flag} is not one that the demo knows: ${known.join(', ')}`);
  }
}

export function programOf(command: Command, programs: readonly Program[]): Program {
  const line = `${command.words.join(' ')} `;
  const found = programs.find(({ prefix }) => line.startsWith(`${prefix} `));
  if (found === undefined) {
    throw new Error(
      `"${command.text}" is no command that the demo knows: ${programs.map(({ prefix }) => prefix).join(', ')}`,
    );
  }
  return found;
}

export function parseCommand(command: Command, program: Program): Action {
  const rest = command.words.slice(program.prefix.split(' ').length);
  return program.parse(argumentsOf(rest, command.input));
}
