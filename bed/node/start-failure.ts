import type { KubeObject } from '../../api/meta.js';
import type { Client } from '../../kube/client.js';
import { messageOf } from '../../kube/errors.js';
import { namespacedResource } from '../../kube/resource.js';
import type { KubeletPod } from './pod.js';
import { MountError } from './pod-volumes.js';
import { timestamp } from './step.js';

const EVENTS = namespacedResource<KubeObject & Record<string, unknown>>('v1', 'events', 'Event');

/** What kubelet, containerd and its library for CNI put before the message of a plugin. */
const BEFORE_CNI_ERROR =
  'Failed to create pod sandbox: rpc error: code = Unknown desc = failed to setup network for sandbox ' +
  `"${'0'.repeat(64)}": plugin type="multus" name="multus-cni-network" failed (add): `;

/** Creates the kubelet's Warning event that a pod has no volumes or no sandbox. @param failure for a sandbox, the CNI error */
export async function reportStartFailure(
  client: Client,
  pod: KubeletPod,
  failure: unknown,
  now: number,
): Promise<void> {
  const words = messageOf(failure);
  const { namespace = '', name, uid } = pod.metadata;
  const time = timestamp(now);
  await client.create(EVENTS, {
    metadata: { namespace, name: `${name}.${now.toString(16)}` },
    type: 'Warning',
    ...(failure instanceof MountError
      ? { reason: 'FailedMount', message: words }
      : { reason: 'FailedCreatePodSandBox', message: `${BEFORE_CNI_ERROR}${words}`.slice(0, 1024) }),
    involvedObject: { apiVersion: 'v1', kind: 'Pod', namespace, name, uid },
    source: { component: 'kubelet', host: pod.spec?.nodeName },
    firstTimestamp: time,
    lastTimestamp: time,
    count: 1,
  });
}
