import type { Latency } from './blocks/api.js';
import { type BlockUsage } from './blocks/block-usage.js';
import { type SimulationOptions, type RunResult, simulate } from './blocks/run.js';
import type { Counters } from './blocks/counters.js';
import { percentile } from './load.js';
import type { Figure } from './report.js';

const UTILISATIONS = [0.3, 0.7, 0.9, 0.97];
const NEAR: Latency = { oneWayMs: 2, spread: 0.8, watchMs: [10, 30, 100, 300] };
const FACTOR = 5;
const FAR: Latency = { ...NEAR, oneWayMs: NEAR.oneWayMs * FACTOR, watchMs: NEAR.watchMs.map((ms) => ms * FACTOR) };
/** The default block size of pools, and a smaller one for nodes with few pods. */
const [USUAL, SMALL] = [26, 28];

/** Simulates 1,000 nodes and 100,000 pods with and without blocks: cost of an ADD, watch events, and usage of blocks. */
// oxlint-disable-next-line typescript/require-await -- all benches are async
export async function benchBlocks(): Promise<Figure[]> {
  const figures: Figure[] = [];
  for (const [latency, where] of [
    [NEAR, ''],
    [FAR, `, latency × ${FACTOR}`],
  ] as const) {
    for (const utilisation of UTILISATIONS) {
      for (const hasBlocks of [false, true]) {
        const name = `${nameOf(utilisation)}${hasBlocks ? ', blocks' : ''}${where}`;
        figures.push(...figuresOf(name, { utilisation, hasBlocks, latency, blockSize: USUAL }));
      }
    }
  }
  for (const utilisation of [0.7, 0.9]) {
    const name = `${nameOf(utilisation)}, blocks of /${SMALL}`;
    figures.push(...figuresOf(name, { utilisation, hasBlocks: true, latency: NEAR, blockSize: SMALL }));
  }
  return figures;
}

function nameOf(utilisation: number): string {
  return `blocks: ${Math.round(utilisation * 100)} % in use`;
}

function figuresOf(name: string, given: SimulationOptions): Figure[] {
  const began = performance.now();
  const result = simulate(given);
  const { tallies, layouts } = result;
  process.stderr.write(`  ${name}: ${((performance.now() - began) / 1000).toFixed(0)} s\n`);
  const { start, steady, rollout } = tallies;
  return [
    ...ofAdds(`${name}: start`, [start]),
    ...ofAdds(`${name}: steady`, [steady]),
    ...ofAdds(`${name}: rollout`, [rollout]),
    ...ofWatches(name, result),
    ...(given.hasBlocks ? ofBlocks(name, layouts.rollout, Object.values(tallies)) : []),
  ];
}

function ofAdds(name: string, tallies: readonly Counters[]): Figure[] {
  const sum = (what: (tally: Counters) => number) => tallies.reduce((total, tally) => total + what(tally), 0);
  const adds = sum((tally) => tally.adds);
  const latencies = tallies.flatMap((tally) => tally.latencies);
  const tries = tallies.flatMap((tally) => tally.tries);
  return [
    { name: `${name}: writes an ADD`, value: sum((tally) => tally.creates + tally.blockWrites) / adds, unit: '' },
    { name: `${name}: reads an ADD`, value: sum((tally) => tally.reads) / adds, unit: '' },
    { name: `${name}: conflicts an ADD`, value: sum((tally) => tally.conflicts) / adds, unit: '' },
    { name: `${name}: tries, p50`, value: percentile(tries, 0.5), unit: '' },
    { name: `${name}: tries, p99`, value: percentile(tries, 0.99), unit: '' },
    { name: `${name}: latency, p50`, value: percentile(latencies, 0.5), unit: 'ms' },
    { name: `${name}: latency, p99`, value: percentile(latencies, 0.99), unit: 'ms' },
    { name: `${name}: ADDs that found nothing`, value: sum((tally) => tally.refused), unit: '' },
    { name: `${name}: from own blocks`, value: (100 * sum((tally) => tally.fromBlocks)) / adds, unit: '%' },
  ];
}

/** Returns the watch events per agent during the rollout, and those of the whole run. */
function ofWatches(name: string, { tallies, eventBytes }: RunResult): Figure[] {
  const { rollout } = tallies;
  const perAgent = (rollout.spaceEvents + rollout.ownEvents) / AGENTS / (rollout.lasted / 60_000);
  const all = Object.values(tallies).reduce((sum, { spaceEvents, ownEvents }) => sum + spaceEvents + ownEvents, 0);
  const listed = Object.values(tallies).reduce((sum, { spaceListed }) => sum + spaceListed, 0);
  return [
    { name: `${name}: watch events, an agent and minute`, value: perAgent, unit: '' },
    { name: `${name}: watch events`, value: all / 1e6, unit: 'million' },
    { name: `${name}: listed leases`, value: listed / 1e6, unit: 'million' },
    { name: `${name}: bytes of both, about`, value: ((all + listed) * eventBytes) / 1e9, unit: 'GB' },
    { name: `${name}: agents that follow all leases`, value: rollout.following, unit: '' },
  ];
}

const AGENTS = 1_000;

function ofBlocks(name: string, layout: BlockUsage, tallies: readonly Counters[]): Figure[] {
  const { slices, untouched, full, lent, lentAddresses, lentIdle, podLeases, astray } = layout;
  const share = (part: number, of: number) => ({ value: (100 * part) / Math.max(1, of), unit: '%' });
  return [
    { name: `${name}: lent slices`, ...share(lent, slices) },
    { name: `${name}: lent addresses nobody has`, ...share(lentIdle, lentAddresses) },
    { name: `${name}: slices nobody uses`, ...share(untouched, slices) },
    { name: `${name}: slices partly in use`, ...share(slices - untouched - full, slices) },
    { name: `${name}: addresses in blocks of other nodes`, ...share(astray, podLeases) },
    {
      name: `${name}: writes of blocks`,
      value: tallies.reduce((sum, { blockWrites }) => sum + blockWrites, 0),
      unit: '',
    },
  ];
}
