import type { Client } from '../../../kube/client.js';
import type { WireLocation, Wire } from '../../../bed/network/wire.js';
import type { Kubectl } from '../../../bed/story/kubectl/kubectl.js';

/** The environment in which the commands of a page run. */
export interface Terminal {
  readonly client: Client;
  readonly kubectl: Kubectl;
  /** False if pod networks are simulated. */
  readonly hasNetworks: boolean;
  /** Undefined if the demo has no access to the networks of pods. */
  readonly wire: PodWire | undefined;
}

export interface PodWire {
  readonly wire: Wire;
  /** The network namespace of a pod. @throws {Error} if the pod has no network */
  locationOf(ref: { namespace: string; name: string }): Promise<WireLocation>;
}

/** A parsed command. @param namespace that kubectl uses too. @throws {Error} if the command fails */
export type Action = (terminal: Terminal, namespace: string) => Promise<string>;

/** Commands that the demo carries out itself. */
export interface EmulatedProgram {
  /** The first words of its commands. */
  readonly prefix: string;
  /** Whether the real program would not work in this terminal. */
  isNeeded(terminal: Pick<Terminal, 'wire'>): boolean;
  /** @param words after the prefix @throws {Error} for unknown arguments */
  parse(words: readonly string[]): Action;
}
