import { createReadStream } from 'node:fs';
import { PassThrough } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import { MAX_AUDIT_LINE } from '../../api/audit-record.js';
import type { Client } from '../../kube/client.js';
import { StatusError, messageOf } from '../../kube/errors.js';
import { resourcePath } from '../../kube/resource.js';
import type { Transport } from '../../kube/transport/transport.js';
import { CommandError } from '../exit-code.js';
import { reasonOf } from '../forbidden.js';
import { INSTALLED, PROCESS_PODS, type ProcessPod, componentOf, findNamespacesOrDefault } from '../installation.js';
import { readList, valueOr } from '../reader.js';
import type { AuditSources } from './history.js';

/** The components that contain ipam. */
const COMPONENTS: readonly string[] = ['ipam', 'all'];
const IDLE_MS = 60_000;
const MIB = 1024 * 1024;
/** The kubelet's words instead of a log that it cannot read, with the status 200. */
const KUBELET_FAILURE = 'unable to retrieve container logs for ';

interface LogSources {
  readonly client: Pick<Client, 'list' | 'listAs'>;
  readonly transport: Pick<Transport, 'chunks'>;
}

interface LogReader extends Pick<LogSources, 'transport'> {
  readonly unread: Set<string>;
  readonly addBytes: (count: number) => void;
}

/**
 * Finds the logs of ipam's pods. Each is read line by line, and not before its first line is asked for.
 * @throws {CommandError} if there is no such pod
 * @throws {StatusError} if the user may not list pods
 */
export async function findPodLogs(
  { client, transport }: LogSources,
  showProgress: (text: string) => void,
): Promise<AuditSources> {
  showProgress('looking for the pods of ipam…');
  const unread = new Set<string>();
  const pods = await listIpamPods(client, unread);
  let bytes = 0;
  const addBytes = (count: number) => {
    const isNext = Math.floor((bytes + count) / MIB) > Math.floor(bytes / MIB);
    bytes += count;
    if (isNext) showProgress(`reading the logs of ${pods.length} pods: ${Math.floor(bytes / MIB)} MiB…`);
  };
  const lines = pods.flatMap((pod) =>
    (pod.spec?.containers ?? []).map(({ name }) => linesOfContainer(pod, name, { transport, unread, addBytes })),
  );
  showProgress(`reading the logs of ${pods.length} pods…`);
  return { lines, unread };
}

async function listIpamPods(client: LogSources['client'], unread: Set<string>): Promise<ProcessPod[]> {
  const namespaces = [...(await findNamespacesOrDefault(client))];
  const pods: ProcessPod[] = [];
  let refusal: StatusError | undefined;
  for (const namespace of namespaces) {
    const read = await readList(client, PROCESS_PODS, { namespace, labelSelector: INSTALLED });
    if (read.kind === 'forbidden') {
      refusal = read.error;
      unread.add(`the pods of namespace ${namespace} could not be listed: ${read.why}`);
    }
    const found = valueOr(read, { forbidden: [] });
    pods.push(...found.filter((pod) => COMPONENTS.includes(componentOf(pod))));
  }
  if (pods.length > 0) return pods;
  throw refusal ?? new CommandError(`no pod of ipam was found in the namespaces ${namespaces.join(', ')}`);
}

/** Yields the lines of the container's run before a restart, then those of its last run. */
async function* linesOfContainer(
  pod: ProcessPod,
  container: string,
  reader: LogReader,
): AsyncGenerator<string, void, undefined> {
  const isWaiting = pod.status?.containerStatuses?.some(({ name, state }) => name === container && state?.waiting);
  if (isWaiting) {
    // the kubelet answers with the log of the run before, if there is one
    yield* linesOfRun(pod, { container }, true, reader);
  } else {
    yield* linesOfRun(pod, { container, previous: true }, true, reader);
    yield* linesOfRun(pod, { container }, false, reader);
  }
}

/** @param mayBeAbsent the container may not have run */
async function* linesOfRun(
  { metadata: { namespace, name } }: ProcessPod,
  query: { container: string; previous?: true },
  mayBeAbsent: boolean,
  { transport, unread, addBytes }: LogReader,
): AsyncGenerator<string, void, undefined> {
  const path = resourcePath(PROCESS_PODS, { namespace, name, subresource: 'log' });
  const addUnread = (reason: string) =>
    unread.add(
      `the log of container ${query.container} of pod ${namespace ?? ''}/${name} could not be read: ${reason}`,
    );
  const { signal } = new AbortController();
  try {
    const chunks = transport.chunks({ path, query, signal, idleMs: IDLE_MS });
    for await (const line of splitLines(counted(chunks, addBytes))) {
      if (line.startsWith(KUBELET_FAILURE)) addUnread(line);
      yield line;
    }
  } catch (error) {
    const isAbsent = mayBeAbsent && error instanceof StatusError && error.status === 400;
    if (!isAbsent) addUnread(reasonOf(error));
  }
}

async function* counted(chunks: AsyncIterable<Buffer>, add: (count: number) => void): AsyncGenerator<Buffer> {
  for await (const chunk of chunks) {
    add(chunk.length);
    yield chunk;
  }
}

/** Takes the place of a line that is too long. */
const TOO_LONG = '(too long)';

/** Reads the lines of a file, which may be compressed with gzip: its name then ends with `.gz`. @throws {CommandError} if it cannot be read */
export async function* linesOfFile(path: string): AsyncGenerator<string> {
  const output = new PassThrough();
  const source = createReadStream(path);
  const copied = path.endsWith('.gz') ? pipeline(source, createGunzip(), output) : pipeline(source, output);
  copied.catch(() => undefined);
  try {
    yield* splitLines(output);
  } catch (error) {
    throw new CommandError(`cannot read ${path}: ${messageOf(error)}`, { cause: error });
  } finally {
    source.destroy();
  }
}

/** Splits text into lines. Never keeps more than one line and one chunk in memory. */
async function* splitLines(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  let rest = '';
  let isTooLong = false;
  const decoder = new TextDecoder();
  for await (const chunk of chunks) {
    const parts = decoder.decode(chunk, { stream: true }).split('\n');
    for (const [index, part] of parts.entries()) {
      rest = isTooLong ? '' : rest + part;
      isTooLong ||= rest.length > MAX_AUDIT_LINE;
      if (index === parts.length - 1) break;
      yield isTooLong ? TOO_LONG : rest;
      [rest, isTooLong] = ['', false];
    }
  }
  if (rest !== '' || isTooLong) yield isTooLong ? TOO_LONG : rest;
}
