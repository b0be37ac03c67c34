import type { KubeObject } from '../../../api/meta.js';
import type { Client } from '../../../kube/client.js';
import type { Resource } from '../../../kube/resource.js';
import type { KubeletPod } from './pod.js';
import { timestamp } from './step.js';

interface Event extends KubeObject {
  type: string;
  reason: string;
  message: string;
  involvedObject: object;
  source: object;
  firstTimestamp: string;
  lastTimestamp: string;
  count: number;
}

const EVENTS: Resource<Event> = { group: '', version: 'v1', plural: 'events', kind: 'Event', namespaced: true };

/** Creates the kubelet's Warning event that a pod has no sandbox, with the CNI error. */
export async function reportSandboxFailure(
  client: Client,
  pod: KubeletPod,
  { words, now }: { words: string; now: number },
): Promise<void> {
  const { namespace = '', name, uid } = pod.metadata;
  const time = timestamp(now);
  await client.create(EVENTS, {
    metadata: { namespace, name: `${name}.${now.toString(16)}` },
    type: 'Warning',
    reason: 'FailedCreatePodSandBox',
    message: `Failed to create pod sandbox: failed to setup network for sandbox: ${words}`.slice(0, 1024),
    involvedObject: { apiVersion: 'v1', kind: 'Pod', namespace, name, uid },
    source: { component: 'kubelet', host: pod.spec?.nodeName },
    firstTimestamp: time,
    lastTimestamp: time,
    count: 1,
  });
}
