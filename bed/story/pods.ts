import { NETWORKS_ANNOTATION } from '../../api/names.js';
import type { Pod } from '../../api/pod.js';
import type { KubeletPod } from '../node/pod.js';
import type { Client } from '../../kube/client.js';
import type { ObjectRef } from '../../kube/resource.js';
import { PODS } from '../../kube/resources.js';
import { untilValue } from '../processes/wait.js';
import { ORDINARY_IMAGE } from '../real-nodes/images/images.js';

/** Creates an ordinary pod. @param elements of its networks annotation, such as `{ name: 'blue' }` */
export function createPod(client: Client, ref: ObjectRef, elements: readonly object[]): Promise<Pod> {
  const annotations = { [NETWORKS_ANNOTATION]: JSON.stringify(elements) };
  const spec = { containers: [{ name: 'main', image: ORDINARY_IMAGE }], terminationGracePeriodSeconds: 0 };
  return client.create(PODS, { metadata: { ...ref, annotations }, spec } as Pod);
}

/** Waits until a pod runs. */
export async function runningPod(client: Client, ref: ObjectRef): Promise<KubeletPod> {
  const pod = await untilValue(
    `pod ${ref.name} to run`,
    () => client.find(PODS, ref),
    (found) => found?.status?.phase === 'Running',
  );
  return pod!;
}
