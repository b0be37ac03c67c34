import type { AddressLease } from '../../api/address-lease.js';
import type { Figure } from '../report.js';
import type { PluginRun } from './plugin-caller.js';
import type { CniCluster } from './cluster.js';
import { type Baseline, measureBaseline } from './baseline.js';
import { type BenchNetwork, type PodInterface, addressesOf, bindPods, callFor } from './interfaces.js';
import { leasesOf, removeLeases } from './leases.js';
import {
  type WorkResults,
  failuresOf,
  joinedCalls,
  joinedWork,
  latenciesOf,
  latencyFigures,
  progress,
  rateOf,
  runWork,
} from './measure.js';
import { sum } from './sum.js';

const PODS = 200;
/** Rounds per cell, because the 99th percentile of 200 calls is only the second slowest one. */
const ROUNDS = 3;
/** ADDs per second of whereabouts 3a262bd, for 200 pods on 10 nodes with a /16 on two cores: usual, and with node slices. */
const WHEREABOUTS = { usual: 9.1, slices: 33.5 };
const CROWDED = 16;

interface RoundResult extends Baseline {
  readonly added: WorkResults;
  readonly deleted: WorkResults;
  /** Number of interfaces whose address is a duplicate or has no lease. */
  readonly wrong: number;
  /** Number of addresses that are held after all DELs. */
  readonly leaked: number;
}

/** Measures ADD and DEL of 200 pods with the given concurrency. Several rounds with new pods are joined. */
export async function measureCell(
  cluster: CniCluster,
  network: BenchNetwork,
  { concurrency, what }: { concurrency: number; what: string },
): Promise<Figure[]> {
  const rounds: RoundResult[] = [];
  for (let n = 0; n < ROUNDS; n++) rounds.push(await measureRound(cluster, network, concurrency));
  progress(`ADD and DEL at ${String(concurrency)}${what} done`);
  const start = joinedCalls(rounds.map((each) => each.start));
  const floor = joinedCalls(rounds.map((each) => each.floor));
  const added = joinedWork(rounds.map((each) => each.added));
  const deleted = joinedWork(rounds.map((each) => each.deleted));
  const name = (kind: string) => (which: string) => `cni: ${kind} at ${String(concurrency)}${what}, ${which}`;
  const [ofStart, ofFloor, ofAdd, ofDel] = ['start', 'floor', 'ADD', 'DEL'].map(name) as [
    NameFigure,
    NameFigure,
    NameFigure,
    NameFigure,
  ];
  const none = { target: { atMost: 0 } };
  const floorP99 = latenciesOf(floor).p99Ms;
  return [
    ...latencyFigures(ofStart, start),
    { name: ofFloor('rate'), value: rateOf(floor), unit: '/s' },
    ...latencyFigures(ofFloor, floor),
    { name: ofAdd('rate'), value: rateOf(added), unit: '/s' },
    ...(what === '' && concurrency >= CROWDED ? comparisonFigures(ofAdd, rateOf(added)) : []),
    {
      name: ofAdd('rate, of the floor'),
      value: rateOf(added) / rateOf(floor),
      unit: '',
      ...(concurrency >= CROWDED && { target: { atLeast: 0.9 } }),
    },
    ...latencyFigures(ofAdd, added),
    { name: ofAdd('p99, of the floor'), value: latenciesOf(added).p99Ms / floorP99, unit: '', target: { atMost: 3 } },
    { name: ofAdd('failures'), value: failuresOf(added), unit: '', ...none },
    { name: ofAdd('duplicates'), value: sum(rounds, ({ wrong }) => wrong), unit: '', ...none },
    ...costFigures(ofAdd, added),
    { name: ofDel('rate'), value: rateOf(deleted), unit: '/s' },
    ...latencyFigures(ofDel, deleted),
    { name: ofDel('failures'), value: failuresOf(deleted), unit: '', ...none },
    { name: ofDel('leaks'), value: sum(rounds, ({ leaked }) => leaked), unit: '', ...none },
    ...costFigures(ofDel, deleted),
  ];
}

type NameFigure = (which: string) => string;

function comparisonFigures(name: NameFigure, rate: number): Figure[] {
  return [
    { name: name('rate, of whereabouts'), value: rate / WHEREABOUTS.usual, unit: '', target: { atLeast: 10 } },
    { name: name('rate, of whereabouts with node slices'), value: rate / WHEREABOUTS.slices, unit: '' },
  ];
}

export function costFigures(name: NameFigure, { reads, writes, agentCpuMs, cpuMs, ran }: WorkResults): Figure[] {
  return [
    { name: name('reads of each'), value: reads / ran.length, unit: '' },
    { name: name('writes of each'), value: writes / ran.length, unit: '' },
    { name: name('CPU of all agents'), value: agentCpuMs / ran.length, unit: 'ms' },
    { name: name('CPU of everything'), value: cpuMs / ran.length, unit: 'ms' },
  ];
}

/** Runs one round with new pods, because a known pod would get its previous address, which is less work. */
export async function measureRound(
  cluster: CniCluster,
  network: BenchNetwork,
  concurrency: number,
): Promise<RoundResult> {
  const interfaces = await bindPods(cluster, network, PODS);
  const load = { count: PODS, concurrency };
  const floor = await measureBaseline(cluster, interfaces, { ...load, pool: network.pool });
  const added = await runWork(cluster, (n) => callFor(cluster, 'ADD', interfaces[n]!), load);
  const wrong = countWrong(interfaces, added.ran, await leasesOf(cluster, network.pool));
  const deleted = await runWork(cluster, (n) => callFor(cluster, 'DEL', interfaces[n]!), load);
  const leaked = (await leasesOf(cluster, network.pool)).filter(({ spec }) => spec.releasedAt === undefined).length;
  await removeLeases(cluster, network.pool);
  return { ...floor, added, deleted, wrong, leaked };
}

function countWrong(pods: readonly PodInterface[], ran: readonly PluginRun[], leases: readonly AddressLease[]): number {
  const owners = new Map(leases.map(({ spec }) => [spec.address, spec.owner?.uid]));
  const seen = new Set<string>();
  const isWrong = (one: PluginRun, { metadata }: PodInterface['pod']) => {
    const [address = ''] = addressesOf(one).map((each) => each.split('/')[0]!);
    const isDuplicate = seen.has(address);
    seen.add(address);
    return isDuplicate || owners.get(address) !== metadata.uid;
  };
  return pods.filter(({ pod }, n) => ran[n]!.exit === 0 && isWrong(ran[n]!, pod)).length;
}
