import { createLease } from '../../addressing/lease/lease.js';
import { type Pool, addressesOf } from '../../addressing/pool/pool.js';
import { writeLease } from '../../cluster/lease-writes.js';
import { type CniCluster, NAMESPACE } from './cluster.js';
import { type PodInterface, callFor } from './interfaces.js';
import { removeLeases } from './leases.js';
import { type CallResults, type Load, runCalls } from './measure.js';

export interface Baseline {
  /** Calls of the plugin without any work of the agent. */
  readonly start: CallResults;
  /** The start of a static binary that does nothing, and a bare create of a lease with the agent's identity: the minimum of an ADD. */
  readonly floor: CallResults;
}

/** Measures the baseline in the same pool, with the same watchers. */
export async function measureBaseline(
  cluster: CniCluster,
  interfaces: readonly PodInterface[],
  { pool, ...load }: Load & { pool: Pool },
): Promise<Baseline> {
  const { first } = addressesOf(pool, 4, 'open').ranges[0]!;
  const create = async (n: number) => {
    const { node, interfaceName, containerId } = interfaces[n]!;
    const write = createLease({
      address: { family: 4, value: first + BigInt(n) },
      addressSpace: pool.addressSpace,
      pool: pool.name,
      owner: { kind: 'Pod', namespace: NAMESPACE, name: `floor-${String(n)}`, uid: `floor-${String(n)}` },
      node: node.agent.node,
      containerID: containerId,
      interface: interfaceName,
    });
    await writeLease(node.client, write);
  };
  const start = await runCalls((n) => callFor(cluster, 'VERSION', interfaces[n]!), load);
  const floor = await runCalls(async (n) => {
    const ran = await cluster.nothing.call({}, {});
    const began = performance.now();
    await create(n);
    return { ...ran, ms: ran.ms + performance.now() - began };
  }, load);
  await removeLeases(cluster, pool);
  return { start, floor };
}
