import { benchClaimed } from './cni/claimed-adds.js';
import { startCniCluster } from './cni/cluster.js';
import { benchLastAddresses } from './cni/last-addresses.js';
import { progress } from './cni/measure.js';
import { benchPods } from './cni/pods.js';
import type { Figure } from './report.js';

/** Measures plugin, agent and API server on a separate cluster without KubeVirt, so that the machine does nothing else. */
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
