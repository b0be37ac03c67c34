import type { Client } from '../../kube/client.js';
import type { ApiRequest } from '../../kube/transport.js';
import { isReady } from '../doctor/check-processes.js';
import { INSTALLED, PROCESS_PODS, type ProcessPod, componentOf } from '../installation.js';
import type { BundleNotes } from './notes.js';

/** Agents run on each node; the logs of these many say what is wrong with them. */
const MAX_AGENTS = 50;
/** The newest ones. */
const LOG_LINES = 10_000;
const DEADLINE_MS = 10_000;
const METRICS_PORT = 'metrics';
const INSECURE = '--metrics-secure=false';

/** A text that a process of Holdfast makes. */
export interface ProcessOutput {
  readonly path: readonly string[];
  readonly kind: 'log' | 'metrics';
  readonly request: Pick<ApiRequest, 'path' | 'query' | 'deadlineMs'>;
}

/** Lists the logs and metrics of the processes: first those of the agents that are not ready. */
export async function outputsOf(
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
  const base = `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods`;
  const path = `${base}/${encodeURIComponent(name)}/log`;
  const restarted = [...(status.initContainerStatuses ?? []), ...(status.containerStatuses ?? [])]
    .filter(({ restartCount = 0 }) => restartCount > 0)
    .map((container) => container.name);
  const { initContainers = [], containers = [] } = spec;
  const logs = [...initContainers, ...containers].flatMap((container) => {
    const query = { container: container.name, tailLines: LOG_LINES, timestamps: true };
    const current = { file: container.name, query };
    const previous = { file: `${container.name}.previous`, query: { ...query, previous: true } };
    return restarted.includes(container.name) ? [current, previous] : [current];
  });
  const metrics = containers.flatMap(({ args = [], ports = [] }) =>
    ports.filter((port) => port.name === METRICS_PORT).map((port) => ({ port, isSecure: !args.includes(INSECURE) })),
  );
  return [
    ...logs.map(({ file, query }): ProcessOutput => ({
      path: ['logs', `${namespace}.${name}`, `${file}.log`],
      kind: 'log',
      request: { path, query, deadlineMs: DEADLINE_MS },
    })),
    ...metrics.map(({ port: { containerPort }, isSecure }): ProcessOutput => {
      const target = encodeURIComponent(`${isSecure ? 'https:' : ''}${name}:${containerPort}`);
      const request = { path: `${base}/${target}/proxy/metrics`, deadlineMs: DEADLINE_MS };
      return { path: ['metrics', `${namespace}.${name}.txt`], kind: 'metrics', request };
    }),
  ];
}
