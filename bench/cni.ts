import { benchClaimed } from './cni/claimed-adds.js';
import { startCniCluster } from './cni/cluster.js';
import { benchLastAddresses } from './cni/last-addresses.js';
import { progress } from './cni/measure.js';
import { benchPods } from './cni/pods.js';
import type { Figure } from './report.js';

/**
 * The way of an address to a pod, by the plugin's process, the agent of the node and the API server: on a cluster of its own,
 * without KubeVirt, for the machine shall have nothing else to do.
 */
export async function benchCni(): Promise<Figure[]> {
  const cluster = await startCniCluster(progress);
  try {
    const claimed = await benchClaimed(cluster);
    const last = await benchLastAddresses(cluster);
    progress('last addresses done');
    return [...claimed, ...last, ...(await benchPods(cluster))];
  } finally {
    await cluster.stop();
  }
}
