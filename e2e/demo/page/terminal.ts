import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { messageOf, StatusError } from '../../../kube/errors.js';
import { PODS } from '../../../kube/resources.js';
import type { Environment } from '../../../bed/environment.js';
import { KUBECTL } from './kubectl.js';
import { ping } from './ping.js';
import { type Output, type Program, programOf, type Terminal, parseCommand } from './program.js';
import type { Command } from './shell.js';
import { VIRTCTL } from './virtctl.js';

/** The programs that a page may use. */
export const PROGRAMS: readonly Program[] = [...KUBECTL, ping, ...VIRTCTL];

export async function openTerminal({ client, kubeconfig, bed }: Environment): Promise<Terminal> {
  // a discovery cache of an earlier bed would be wrong for this one
  const cache = bed === undefined ? {} : { KUBECACHEDIR: join(bed.dataDir, 'kubectl') };
  const env = { ...process.env, KUBECONFIG: kubeconfig, ...cache };
  const kubectl = (args: readonly string[], input = '') => execute('kubectl', args, { env, input });
  const { succeeded } = await kubectl(['version', '--client']);
  const wire = bed?.wire;
  return {
    client,
    kubeconfig,
    namespace: 'default',
    kubectl: succeeded ? kubectl : undefined,
    hasNetworks: bed === undefined || wire !== undefined,
    wire: wire && { wire: wire.wire, locationOf: async (ref) => wire.locationOf(await client.get(PODS, ref)) },
  };
}

/** Runs a command of the page with the real program if it is installed, or emulates it. */
export async function run(command: Command, terminal: Terminal): Promise<Output> {
  const program = programOf(command, PROGRAMS);
  const action = parseCommand(command, program);
  const [name, ...args] = command.words;
  if (name === 'kubectl' && terminal.kubectl !== undefined && !program.isEmulated(terminal)) {
    // kubectl warns if a cluster-scoped object is given a namespace
    const where = args.includes('namespace') ? [] : [`--namespace=${terminal.namespace}`];
    return terminal.kubectl([...where, ...args], command.input);
  }
  try {
    return { text: await action(terminal), succeeded: true };
  } catch (error) {
    return { text: refusal(command, error), succeeded: false };
  }
}

/** An error as kubectl prints it. */
function refusal({ words }: Command, error: unknown): string {
  if (!(error instanceof StatusError)) return `error: ${messageOf(error)}`;
  const { reason, status, details } = error;
  if (reason === 'Invalid') {
    const { kind = '', name = '', causes = [] } = details ?? {};
    const list = causes.map(({ field = '', message = '' }) => `${field}: ${message}`).join(', ');
    return `The ${kind} "${name}" is invalid: ${list}`;
  }
  const [, message = ''] = error.message.split(`: ${String(status)} ${reason}: `);
  return `Error from server (${reason}): ${words[1] === 'apply' ? 'error when creating "STDIN": ' : ''}${message}`;
}

async function execute(
  command: string,
  args: readonly string[],
  { env, input }: { env: NodeJS.ProcessEnv; input: string },
): Promise<Output> {
  const child = spawn(command, args, { env, stdio: 'pipe' });
  child.stdin.on('error', () => undefined); // it may exit before it has read all input
  child.stdin.end(input);
  const ended = once(child, 'close').then(([code]) => code === 0);
  try {
    const [out, err, succeeded] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
    return { text: `${out}${err}`.trimEnd(), succeeded };
  } catch (error) {
    return { text: messageOf(error), succeeded: false }; // it is not installed
  }
}
