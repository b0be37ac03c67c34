import { addressesOf } from '../../addressing/pool/pool.js';
import type { Figure } from '../report.js';
import type { CniCluster } from './cluster.js';
import { type BenchNetwork, bindPods, callFor, createNetwork } from './interfaces.js';
import { createReservations, removeLeases } from './leases.js';
import { agentRss, failuresOf, latenciesOf, progress, runCalls } from './measure.js';
import { measureCell, measureRound } from './rounds.js';

const EXISTING_LEASES = 20_000;

/** Measures 200 pods on 10 nodes with a /16, with growing concurrency, and then the same among many leases. */
export async function benchPods(cluster: CniCluster): Promise<Figure[]> {
  const network = await createNetwork(cluster, 'plain', '10.64.0.0/16');
  const figures = await cells(cluster, network, { concurrencies: [1, 4, 16, 64], what: '' });
  const { last } = addressesOf(network.pool, 4, 'open').ranges[0]!;
  const from = last - BigInt(EXISTING_LEASES - 1);
  await createReservations(cluster, network.pool, { from, count: EXISTING_LEASES });
  progress(`${String(EXISTING_LEASES)} leases made`);
  for (const { agent } of cluster.nodes) {
    await agent.stop();
    await agent.start();
  }
  const what = `, among ${EXISTING_LEASES.toLocaleString('en')} leases`;
  return [...figures, ...(await cells(cluster, network, { concurrencies: [1, 16, 64], what }))];
}

async function cells(
  cluster: CniCluster,
  network: BenchNetwork,
  { concurrencies, what }: { concurrencies: readonly number[]; what: string },
): Promise<Figure[]> {
  const figures = await firstAdds(cluster, network, what);
  await measureRound(cluster, network, 8); // warmed up before it is measured
  for (const concurrency of concurrencies)
    figures.push(...(await measureCell(cluster, network, { concurrency, what })));
  figures.push({ name: `cni: RSS of the largest agent${what}`, value: await agentRss(cluster), unit: 'MiB' });
  return figures;
}

/** Measures the first ADD of each agent after its start, one after the other. */
async function firstAdds(cluster: CniCluster, network: BenchNetwork, what: string): Promise<Figure[]> {
  const count = cluster.nodes.length;
  const interfaces = await bindPods(cluster, network, count);
  const added = await runCalls((n) => callFor(cluster, 'ADD', interfaces[n]!), { count, concurrency: 1 });
  await runCalls((n) => callFor(cluster, 'DEL', interfaces[n]!), { count, concurrency: 1 });
  await removeLeases(cluster, network.pool);
  const name = `cni: first ADD of an agent${what}`;
  return [
    { name: `${name}, p50`, value: latenciesOf(added).p50Ms, unit: 'ms' },
    { name: `${name}, failures`, value: failuresOf(added), unit: '', target: { atMost: 0 } },
  ];
}
