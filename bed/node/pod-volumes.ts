import { controllingVmi } from '../../api/pod.js';
import type { Client } from '../../kube/client.js';
import { SECRETS } from '../../kube/resources.js';
import type { KubeletPod } from './pod.js';

/** A volume of a pod cannot be mounted. */
export class MountError extends Error {}

/**
 * Checks that the Secrets of a launcher's volumes exist, such as those of cloud-init, because a kubelet creates no sandbox before.
 * Pods of Holdfast need none: their processes run outside of pods.
 * @throws {MountError} with the kubelet's message
 */
export async function requireSecrets(client: Client, pod: KubeletPod): Promise<void> {
  if (!controllingVmi(pod)) return;
  for (const { name: volume, secret } of pod.spec?.volumes ?? []) {
    if (secret?.secretName === undefined || secret.optional) continue;
    if (await client.find(SECRETS, { namespace: pod.metadata.namespace, name: secret.secretName })) continue;
    throw new MountError(`MountVolume.SetUp failed for volume "${volume}" : secret "${secret.secretName}" not found`);
  }
}
