import { controllingVmi } from '../../api/pod.js';
import type { Client } from '../../kube/client.js';
import { SECRETS } from '../../kube/resources.js';
import type { KubeletPod } from './pod.js';

/** A volume of a pod cannot be mounted. */
export class MountError extends Error {}

/**
 * The data of Secrets by the name of the pod's volume, as they were when it was mounted: KubeVirt mounts keys by sub-path, which a kubelet never
 * updates.
 */
export type MountedSecrets = ReadonlyMap<string, Readonly<Record<string, string>>>;

/**
 * Mounts the Secrets of a launcher's volumes, such as those of cloud-init. A kubelet creates no sandbox before they exist, and asks for no key of
 * them. Pods of Holdfast need none: their processes run outside of pods.
 * @throws {MountError} with the kubelet's message
 */
export async function mountSecrets(client: Client, pod: KubeletPod): Promise<MountedSecrets> {
  const mounted = new Map<string, Readonly<Record<string, string>>>();
  if (!controllingVmi(pod)) return mounted;
  for (const { name: volume, secret } of pod.spec?.volumes ?? []) {
    if (secret?.secretName === undefined) continue;
    const found = await client.find(SECRETS, { namespace: pod.metadata.namespace, name: secret.secretName });
    if (found !== undefined) mounted.set(volume, found.data ?? {});
    else if (secret.optional !== true)
      throw new MountError(`MountVolume.SetUp failed for volume "${volume}" : secret "${secret.secretName}" not found`);
  }
  return mounted;
}
