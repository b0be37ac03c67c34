import { addressesOf } from '../../addressing/pool/pool.js';
import { percentilesOf } from '../load.js';
import type { Figure } from '../report.js';
import type { PluginRun } from './plugin-caller.js';
import type { CniCluster } from './cluster.js';
import { type BenchNetwork, bindPods, callFor, codeOf, createNetwork } from './interfaces.js';
import { createReservations, removeLeases } from './leases.js';
import { runCalls } from './measure.js';

const LAST = 4;
const CONTENDERS = 8;
const ROUNDS = 10;
const TRY_AGAIN = 11;

/** Measures 8 pods on 8 nodes that request the last 4 addresses of a /24 at once. */
export async function benchLastAddresses(cluster: CniCluster): Promise<Figure[]> {
  const network = await createNetwork(cluster, 'small', '10.65.0.0/24');
  const { first, last } = addressesOf(network.pool, 4, 'open').ranges[0]!;
  const count = Number(last - first) + 1 - LAST;
  await createReservations(cluster, network.pool, { from: first, count });
  const unprepared = await contend(cluster, network);
  const rounds: PluginRun[][] = [];
  for (let n = 0; n < ROUNDS; n++) rounds.push(await contend(cluster, network));
  return [...figuresOf('by agents that do not know the pool', [unprepared]), ...figuresOf('', rounds)];
}

async function contend(cluster: CniCluster, network: BenchNetwork): Promise<PluginRun[]> {
  const interfaces = await bindPods(cluster, network, CONTENDERS);
  const load = { count: CONTENDERS, concurrency: CONTENDERS };
  const { ran } = await runCalls((n) => callFor(cluster, 'ADD', interfaces[n]!), load);
  await runCalls((n) => callFor(cluster, 'DEL', interfaces[n]!), load);
  await removeLeases(cluster, network.pool);
  return [...ran];
}

function figuresOf(how: string, rounds: readonly (readonly PluginRun[])[]): Figure[] {
  const all = rounds.flat();
  const winners = all.filter(({ exit }) => exit === 0);
  const losers = all.filter(({ exit }) => exit !== 0);
  const unfair = rounds.filter((ran) => ran.filter(({ exit }) => exit === 0).length !== LAST).length;
  const others = losers.filter((ran) => codeOf(ran) !== TRY_AGAIN).length;
  const [won, lost] = [winners, losers].map((some) => percentilesOf(some.map(({ ms }) => ms)));
  const name = (what: string) =>
    `cni: last ${String(LAST)} addresses for ${String(CONTENDERS)} pods${how && ` ${how}`}, ${what}`;
  const none = { target: { atMost: 0 } };
  return [
    { name: name('rounds with another number of winners'), value: unfair, unit: '', ...none },
    { name: name('losers with another code than 11'), value: others, unit: '', ...none },
    { name: name('winners, p50'), value: won!.p50Ms, unit: 'ms' },
    { name: name('winners, p99'), value: won!.p99Ms, unit: 'ms' },
    { name: name('losers, p50'), value: lost!.p50Ms, unit: 'ms' },
    { name: name('losers, p99'), value: lost!.p99Ms, unit: 'ms' },
  ];
}
