import type { Client } from '../../kube/client.js';
import { resourcePath } from '../../kube/resource.js';
import type { ApiRequest, Query, Transport } from '../../kube/transport/transport.js';
import { INSTALLED, PROCESS_PODS, type ProcessPod, componentOf, isReady } from '../installation.js';
import { BUNDLED_KINDS, type BundledKind } from './kinds.js';
import { type BundleNotes, type BundleOptions, describeBundle } from './notes.js';
import { redactObject, redactText } from './redact.js';
import type { ArchivedFile } from './tar.js';

/** Bounds of a bundle. */
interface BundleLimits {
  readonly objectsPerKind: number;
  readonly logBytes: number;
  readonly metricsBytes: number;
  /** Before compression, of objects, logs and metrics. */
  readonly totalBytes: number;
}

const MIB = 1024 * 1024;

export const BUNDLE_LIMITS: BundleLimits = {
  objectsPerKind: 100_000,
  logBytes: 4 * MIB,
  metricsBytes: 2 * MIB,
  totalBytes: 512 * MIB,
};

interface BundleSources {
  readonly client: Pick<Client, 'pages'>;
  readonly transport: Pick<Transport, 'text'>;
  /** Namespaces of the installation. */
  readonly namespaces: ReadonlySet<string>;
  readonly showProgress: (text: string) => void;
  readonly limits: BundleLimits;
  readonly version: string;
  /** RFC 3339. */
  readonly time: string;
}

type Files = AsyncGenerator<ArchivedFile, void, undefined>;

/**
 * Yields the files of a bundle. It holds one file in memory at a time, and reads the next one when it is asked for it. Whatever cannot be read is
 * noted, and the rest follows.
 * @param reports what other commands say, by file name
 */
export async function* collectBundle(
  reports: Readonly<Record<string, string>>,
  notes: BundleNotes,
  options: BundleOptions,
  sources: BundleSources,
): Files {
  for (const [name, text] of Object.entries(reports)) yield { path: [name], text: redactText(text) };
  let bytes = 0;
  for await (const file of readParts(notes, options, sources)) {
    bytes += Buffer.byteLength(file.text);
    if (bytes > sources.limits.totalBytes) {
      notes.cut('everything after the last file', `the bundle reached ${sources.limits.totalBytes} bytes`);
      break;
    }
    yield file;
  }
  yield { path: ['README.txt'], text: describeBundle(notes.lines, options, sources) };
}

async function* readParts(notes: BundleNotes, options: BundleOptions, sources: BundleSources): Files {
  for (const kind of BUNDLED_KINDS) {
    const name = kind.name ?? kind.resource.plural;
    sources.showProgress(`reading ${name}…`);
    for (const namespace of namespacesOf(kind, options, sources)) {
      yield* readObjects({ kind, name, namespace }, notes, options, sources);
    }
  }
  for (const output of await outputsOf(notes, sources)) {
    sources.showProgress(`reading ${output.path.join('/')}…`);
    yield* readOutput(output, notes, options, sources);
  }
}

function namespacesOf(
  { from }: BundledKind,
  { namespace }: BundleOptions,
  { namespaces }: BundleSources,
): readonly (string | undefined)[] {
  if (from === 'installation') return [...namespaces];
  return [from === 'tenants' ? namespace : undefined];
}

async function* readObjects(
  { kind, name, namespace }: { kind: BundledKind; name: string; namespace: string | undefined },
  notes: BundleNotes,
  options: BundleOptions,
  { client, limits }: BundleSources,
): Files {
  const { resource, labelSelector, fieldSelector, namespaceLabel, isKept = () => true, reduce } = kind;
  const ofTenant =
    namespaceLabel !== undefined && options.namespace !== undefined
      ? `${namespaceLabel}=${options.namespace}`
      : labelSelector;
  const title = namespace === undefined ? name : `${name} in ${namespace}`;
  let count = 0;
  let page = 0;
  try {
    for await (const { items } of client.pages(resource, { namespace, labelSelector: ofTenant, fieldSelector })) {
      const kept = items.filter(isKept).slice(0, limits.objectsPerKind - count);
      count += kept.length;
      page++;
      if (kept.length > 0) {
        const objects = kept.map((object) => redactObject(reduce === undefined ? object : reduce(object)));
        const list = { apiVersion: 'v1', kind: 'List', items: objects };
        const path = ['objects', name, `${namespace ?? 'all'}-${String(page).padStart(4, '0')}.json`];
        yield { path, text: `${JSON.stringify(list, undefined, 1)}\n` };
      }
      if (count >= limits.objectsPerKind) {
        notes.cut(title, `only the first ${count} objects`);
        return;
      }
    }
  } catch (error) {
    notes.missing(title, error);
  }
}

async function* readOutput(
  { path, kind, request }: ProcessOutput,
  notes: BundleNotes,
  { sinceSeconds }: BundleOptions,
  { transport, limits }: BundleSources,
): Files {
  const title = path.join('/');
  const maxBytes = kind === 'log' ? limits.logBytes : limits.metricsBytes;
  const query = kind === 'log' ? { ...request.query, sinceSeconds } : request.query;
  try {
    const { text, isCut } = await transport.text({ method: 'GET', ...request, query }, maxBytes);
    if (isCut) notes.cut(title, `only the last ${maxBytes} bytes`);
    // without its beginning, a line may hide that it contains a secret
    yield { path, text: redactText(isCut ? text.slice(text.indexOf('\n') + 1) : text) };
  } catch (error) {
    notes.missing(title, error);
  }
}

/** Agents run on each node; the logs of these many say what is wrong with them. */
const MAX_AGENTS = 50;
/** The newest ones. */
const LOG_LINES = 10_000;
const DEADLINE_MS = 10_000;
const METRICS_PORT = 'metrics';
const INSECURE = '--metrics-secure=false';

/** A text that a process of Holdfast makes. */
interface ProcessOutput {
  readonly path: readonly string[];
  readonly kind: 'log' | 'metrics';
  readonly request: Pick<ApiRequest, 'path' | 'query' | 'deadlineMs'>;
}

/** Lists the logs and metrics of the processes: first those of the agents that are not ready. */
async function outputsOf(
  notes: BundleNotes,
  { client, namespaces }: { client: Pick<Client, 'pages'>; namespaces: ReadonlySet<string> },
): Promise<ProcessOutput[]> {
  const pods: ProcessPod[] = [];
  for (const namespace of namespaces) {
    try {
      for await (const { items } of client.pages(PROCESS_PODS, { namespace, labelSelector: INSTALLED }))
        pods.push(...items);
    } catch (error) {
      notes.missing(`logs and metrics in ${namespace}`, error);
    }
  }
  const agents = pods.filter(isAgent).sort((a, b) => Number(isReady(a)) - Number(isReady(b)));
  if (agents.length > MAX_AGENTS)
    notes.cut('logs and metrics of agents', `only ${MAX_AGENTS} of ${agents.length} pods`);
  return [...pods.filter((pod) => !isAgent(pod)), ...agents.slice(0, MAX_AGENTS)].flatMap(outputsOfPod);
}

function isAgent(pod: ProcessPod): boolean {
  return componentOf(pod) === 'agent';
}

function outputsOfPod({ metadata: { namespace = '', name }, spec = {}, status = {} }: ProcessPod): ProcessOutput[] {
  const path = resourcePath(PROCESS_PODS, { namespace, name, subresource: 'log' });
  const restarted = [...(status.initContainerStatuses ?? []), ...(status.containerStatuses ?? [])]
    .filter(({ restartCount = 0 }) => restartCount > 0)
    .map((container) => container.name);
  const { initContainers = [], containers = [] } = spec;
  const logOf = (file: string, query: Query): ProcessOutput => ({
    path: ['logs', `${namespace}.${name}`, `${file}.log`],
    kind: 'log',
    request: { path, query: { ...query, tailLines: LOG_LINES, timestamps: true }, deadlineMs: DEADLINE_MS },
  });
  const logs = [...initContainers, ...containers].flatMap(({ name: container }) => [
    logOf(container, { container }),
    ...(restarted.includes(container) ? [logOf(`${container}.previous`, { container, previous: true })] : []),
  ]);
  const metrics = containers.flatMap(({ args = [], ports = [] }) => {
    const scheme = args.includes(INSECURE) ? '' : 'https:';
    return ports
      .filter((port) => port.name === METRICS_PORT)
      .map(({ containerPort }): ProcessOutput => {
        const target = { namespace, name: `${scheme}${name}:${containerPort}`, subresource: 'proxy/metrics' };
        const request = { path: resourcePath(PROCESS_PODS, target), deadlineMs: DEADLINE_MS };
        return { path: ['metrics', `${namespace}.${name}.txt`], kind: 'metrics', request };
      });
  });
  return [...logs, ...metrics];
}
