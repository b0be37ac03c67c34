import type { KubeObject } from '../../api/meta.js';
import { PODS, VIRTUAL_MACHINE_INSTANCES } from '../../kube/resources.js';
import type { Environment } from '../environment.js';
import type { RealNode } from '../real-nodes/real-node.js';
import { EVENTS, type StoryEvent } from './events.js';

const KUBELET_LINES = 60;

interface WithStatus extends KubeObject {
  readonly spec?: { readonly nodeName?: string };
  readonly status?: { readonly phase?: string; readonly nodeName?: string; readonly containerStatuses?: object[] };
}

/** Returns what a person looks at first in the namespace of a test that failed: pods, VMIs, events, and what kubelet logged of them. */
export async function reportNamespace({ client, realCluster }: Environment, namespace: string): Promise<string> {
  const [pods, vmis, events] = await Promise.all([
    client.list(PODS, { namespace }),
    client.list(VIRTUAL_MACHINE_INSTANCES, { namespace }),
    client.list(EVENTS, { namespace }),
  ]);
  const kubelets = await Promise.all((realCluster?.nodes ?? []).map((node) => kubeletLines(node, namespace)));
  return [
    `namespace ${namespace} after this failure:`,
    ...vmis.items.map((vmi) => describeObject('VMI', vmi)),
    ...pods.items.map((pod) => describeObject('pod', pod)),
    ...events.items.toSorted((a, b) => timeOf(a).localeCompare(timeOf(b))).map(describeEvent),
    ...kubelets.flat(),
  ].join('\n  ');
}

function describeObject(kind: string, object: KubeObject): string {
  const { metadata, spec, status } = object as WithStatus;
  const { name, deletionTimestamp } = metadata;
  const states = status?.containerStatuses?.map((container) => JSON.stringify(container)) ?? [];
  const deletion = deletionTimestamp === undefined ? '' : `, deleted with its grace period until ${deletionTimestamp}`;
  const node = spec?.nodeName ?? status?.nodeName ?? 'no node';
  return [`${kind} ${name} on ${node}: ${status?.phase ?? ''}${deletion}`, ...states].join('\n    ');
}

function timeOf({ metadata, ...event }: StoryEvent): string {
  return (event as { lastTimestamp?: string | null }).lastTimestamp ?? metadata.creationTimestamp ?? '';
}

function describeEvent(event: StoryEvent): string {
  const { kind = '', name = '' } = event.involvedObject ?? {};
  return `${timeOf(event)} ${kind} ${name}: ${event.reason ?? ''}: ${event.message ?? ''}`;
}

async function kubeletLines(node: RealNode, namespace: string): Promise<string[]> {
  if (!node.isOn) return [`${node.name} is off`];
  const command = `grep -F "$1" /var/log/kubelet.log | tail -n ${String(KUBELET_LINES)} | cut -c 1-400`;
  const output = await node.run('sh', '-c', command, 'sh', namespace);
  return [`kubelet of ${node.name}:`, ...output.split('\n').filter(Boolean)];
}
