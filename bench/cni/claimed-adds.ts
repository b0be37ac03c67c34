import { untilValue } from '../../bed/processes/wait.js';
import { PODS } from '../../kube/resources.js';
import { runLoad } from '../load.js';
import type { Figure } from '../report.js';
import type { PluginRun } from './plugin-caller.js';
import type { CniCluster } from './cluster.js';
import { type BenchNetwork, type PodInterface, addressesOf, callFor, createNetwork } from './interfaces.js';
import { type BenchVm, createLauncher, createVms } from './launchers.js';
import {
  type CallResults,
  type WorkResults,
  failuresOf,
  latenciesOf,
  latencyFigures,
  progress,
  rateOf,
  runCalls,
  runWork,
} from './measure.js';
import { costFigures } from './rounds.js';
import { sum } from './sum.js';

const VMS = 200;
/** Limit above a bare start of the process, for one socket request and one GET. */
const OVER_START_MS = 12;
/** Prefetched objects: VMI, VM, the claim under both possible names, and its lease. */
const PREFETCHED = 5;
/** Limit of reads per ADD, which includes prefetches that are repeated meanwhile. */
const READS = 1.2;

/** Measures ADD and DEL for launchers whose claims have addresses. */
export async function benchClaimed(cluster: CniCluster): Promise<Figure[]> {
  const network = await createNetwork(cluster, 'claimed', '10.66.0.0/16');
  const warmUp = await createVms(cluster, network, { batch: 'warm', count: VMS });
  await measurePrefetched(cluster, network, { vms: warmUp, concurrency: 8 });
  const figures: Figure[] = [];
  for (const concurrency of [1, 16, 64]) {
    const vms = await createVms(cluster, network, { batch: `known-${String(concurrency)}`, count: VMS });
    const { start, ...rest } = await measurePrefetched(cluster, network, { vms, concurrency });
    figures.push(...prefetchedFigures(concurrency, start, rest));
    progress(`claimed ADD at ${String(concurrency)} done`);
  }
  for (const concurrency of [1, 16]) {
    const vms = await createVms(cluster, network, { batch: `new-${String(concurrency)}`, count: VMS });
    const added = await measureUnprepared(cluster, network, { vms, concurrency });
    const name = (what: string) => `cni: claimed ADD at ${String(concurrency)}, asked as soon as bound, ${what}`;
    figures.push(...latencyFigures(name, added), failureFigure(name('failures'), added), ...costFigures(name, added));
    progress(`claimed ADD at ${String(concurrency)}, asked as soon as bound, done`);
  }
  return figures;
}

interface PrefetchedRun {
  /** Calls of the plugin without any work of the agent. */
  readonly start: CallResults;
  readonly added: WorkResults;
  readonly deleted: WorkResults;
  /** Number of interfaces that did not get the addresses of their claim. */
  readonly wrong: number;
}

/** Measures ADDs for launchers whose agents have prefetched everything. */
async function measurePrefetched(
  cluster: CniCluster,
  network: BenchNetwork,
  { vms, concurrency }: { vms: readonly BenchVm[]; concurrency: number },
): Promise<PrefetchedRun> {
  const before = await countReads(cluster);
  const interfaces: PodInterface[] = [];
  for (const [n, vm] of vms.entries()) interfaces.push(await createLauncher(cluster, network, { vm, n }));
  await untilValue(
    'agents to prefetch all launchers',
    () => countReads(cluster),
    (count) => count >= before + vms.length * PREFETCHED,
  );
  const load = { count: vms.length, concurrency };
  const added = await runWork(cluster, (n) => callFor(cluster, 'ADD', interfaces[n]!), load);
  await markRunning(cluster, interfaces);
  const start = await runCalls((n) => callFor(cluster, 'VERSION', interfaces[n]!), load);
  const deleted = await runWork(cluster, (n) => callFor(cluster, 'DEL', interfaces[n]!), load);
  const isRight = (ran: PluginRun, { addresses }: BenchVm) =>
    ran.exit === 0 && addressesOf(ran).join(' ') === addresses.join(' ');
  const wrong = vms.filter((vm, n) => !isRight(added.ran[n]!, vm)).length;
  return { start, added, deleted, wrong };
}

/** Measures ADDs that come as soon as the launcher is bound, when the agent may not know the pod. Costs include the prefetch. */
async function measureUnprepared(
  cluster: CniCluster,
  network: BenchNetwork,
  { vms, concurrency }: { vms: readonly BenchVm[]; concurrency: number },
): Promise<WorkResults> {
  const interfaces: PodInterface[] = [];
  const add = async (n: number) => {
    interfaces[n] = await createLauncher(cluster, network, { vm: vms[n]!, n });
    return callFor(cluster, 'ADD', interfaces[n]);
  };
  const added = await runWork(cluster, add, { count: vms.length, concurrency });
  await markRunning(cluster, interfaces);
  return added;
}

/** Sets the pods to Running, as the kubelet does, which ends their prefetches. */
async function markRunning({ plane }: CniCluster, interfaces: readonly PodInterface[]): Promise<void> {
  const say = async (n: number) => {
    const { namespace, name } = interfaces[n]!.pod.metadata;
    const patch = { type: 'merge', body: { status: { phase: 'Running' } } } as const;
    await plane.client.patch(PODS, { namespace, name }, patch, { subresource: 'status' });
  };
  await runLoad(say, { count: interfaces.length, concurrency: 16 });
}

async function countReads({ nodes }: CniCluster): Promise<number> {
  return sum(await Promise.all(nodes.map(({ agent }) => agent.requests())), (requests) => requests.reads);
}

function prefetchedFigures(
  concurrency: number,
  start: CallResults,
  { added, deleted, wrong }: Omit<PrefetchedRun, 'start'>,
): Figure[] {
  const nameOf = (kind: string) => (what: string) => `cni: claimed ${kind} at ${String(concurrency)}, ${what}`;
  const [ofAdd, ofDel] = [nameOf('ADD'), nameOf('DEL')];
  const over = latenciesOf(added).p50Ms - latenciesOf(start).p50Ms;
  const target = concurrency === 1 ? { target: { atMost: OVER_START_MS } } : {};
  return [
    { name: ofAdd('rate'), value: rateOf(added), unit: '/s' },
    ...latencyFigures(ofAdd, added),
    { name: ofAdd('p50 over a bare start'), value: over, unit: 'ms', ...target },
    failureFigure(ofAdd('failures'), added),
    { name: ofAdd('wrong addresses'), value: wrong, unit: '', target: { atMost: 0 } },
    ...costFigures(ofAdd, added).map((figure) => withTargets(figure)),
    ...latencyFigures(ofDel, deleted),
    failureFigure(ofDel('failures'), deleted),
    ...costFigures(ofDel, deleted).map((figure) => withTargets(figure)),
  ];
}

/** Adds the targets: one read per lease, and no writes. */
function withTargets(figure: Figure): Figure {
  if (figure.name.endsWith('reads of each')) return { ...figure, target: { atMost: READS } };
  if (figure.name.endsWith('writes of each')) return { ...figure, target: { atMost: 0 } };
  return figure;
}

function failureFigure(name: string, calls: CallResults): Figure {
  return { name, value: failuresOf(calls), unit: '', target: { atMost: 0 } };
}
