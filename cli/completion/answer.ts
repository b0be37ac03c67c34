import type { Command as Program } from 'commander';
import type { Client } from '../../kube/client.js';
import type { Resource } from '../../kube/resource.js';
import { ADDRESS_POOLS, NAMESPACES, VIRTUAL_MACHINES } from '../../kube/resources.js';
import { type CompletedObject, complete } from './complete.js';

/** A user waits for the answer of a key. */
export const COMPLETION_TIMEOUT_MS = 2_000;
const MAX_NAMES = 1_000;
/** ShellCompDirectiveNoFileComp of cobra, which kubectl reads: the shell does not add names of files. */
const NO_FILES = ':4';
const RESOURCES: Readonly<Record<CompletedObject, Resource>> = {
  namespace: NAMESPACES,
  pool: ADDRESS_POOLS,
  vm: VIRTUAL_MACHINES,
};

interface CompletionCluster {
  readonly client: Pick<Client, 'pages'>;
  readonly home: string;
}
export type ConnectForCompletion = (
  options: { readonly kubeconfig?: string; readonly context?: string },
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
  const { candidates, objects, prefix, current, given } = complete(program, words);
  const names = objects === undefined ? [] : await namesOf(objects, given, connect, signal);
  const matching = [...candidates, ...names].filter((candidate) => candidate.startsWith(current));
  return [...matching.map((candidate) => `${prefix}${candidate}`), NO_FILES, ''].join('\n');
}

async function namesOf(
  objects: CompletedObject,
  given: Readonly<Record<string, string>>,
  connect: ConnectForCompletion,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const names: string[] = [];
  const resource = RESOURCES[objects];
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
