import { messageOf } from '../../../kube/errors.js';
import { PODS } from '../../../kube/resources.js';
import type { Environment } from '../../../bed/environment.js';
import { Kubectl, type KubectlOutput } from '../../../bed/story/kubectl/kubectl.js';
import { ping } from './ping.js';
import type { Terminal } from './program.js';
import type { Command } from './shell.js';
import { VIRTCTL } from './virtctl.js';

const EMULATED = [ping, ...VIRTCTL];

export async function openTerminal({ client, kubeconfig, bed }: Environment): Promise<Terminal> {
  const wire = bed?.wire;
  return {
    client,
    kubectl: await Kubectl.open(kubeconfig),
    hasNetworks: bed === undefined || wire !== undefined,
    wire: wire && { wire: wire.wire, locationOf: async (ref) => wire.locationOf(await client.get(PODS, ref)) },
  };
}

/** Whether the command changes nothing, so that it may be repeated until its output is as expected. */
export function isReadOnly({ words: [program, verb = ''] }: Command): boolean {
  return program === 'kubectl' && ['get', 'exec'].includes(verb);
}

/** @returns a function that runs the command @throws {Error} if the demo does not support it */
export function programOf({ text, words, input }: Command): (terminal: Terminal) => Promise<KubectlOutput> {
  const [name, ...args] = words;
  const emulated = EMULATED.find(({ prefix }) => text.startsWith(`${prefix} `));
  if (emulated === undefined && name !== 'kubectl')
    throw new Error(`the demo supports only kubectl and ${VIRTCTL.map(({ prefix }) => prefix).join(', ')}: "${text}"`);
  const action = emulated?.parse(words.slice(emulated.prefix.split(' ').length));
  return async (terminal) => {
    if (action === undefined || emulated?.isNeeded(terminal) !== true) return terminal.kubectl.run(args, input);
    try {
      return { text: await action(terminal, await terminal.kubectl.namespace()), succeeded: true };
    } catch (error) {
      return { text: `error: ${messageOf(error)}`, succeeded: false };
    }
  };
}
