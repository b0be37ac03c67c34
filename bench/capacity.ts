import { Publisher } from '../capacity/publisher.js';
import { silentLogger } from '../kube/log.js';
import { ManualClock } from '../test/manual-clock.js';
import { memory } from './capacity/memory.js';
import { BEGIN, CapacityBenchWorld, type CapacityBenchOptions } from './capacity/world.js';
import type { Figure } from './report.js';

const NODES = [100, 500, 1_000];
const POOLS = [1, 20, 100];
/** Rounds until the advertised capacity is stable. */
const CALM_ROUNDS = 8;
const ROUNDS = 5;
const INTERVAL_MS = 1_000;
const SETTLE_MS = 3_000;
const PATIENCE_MS = 20_000;

/** Measures rounds of `holdfast capacity` without an API server: the CPU time of a round, and memory. */
export async function benchCapacity(): Promise<Figure[]> {
  const figures = memory();
  await round({ nodes: 100, pools: 1, hasBlocks: false }); // warm up
  let smallest: number | undefined;
  for (const hasBlocks of [false, true]) {
    for (const pools of POOLS) {
      for (const nodes of NODES) {
        const cpuMs = await round({ nodes, pools, hasBlocks });
        smallest ??= cpuMs;
        const name = `capacity: ${nodes} nodes, ${pools} pools${hasBlocks ? ', blocks' : ''}`;
        process.stderr.write(`  ${name}: ${cpuMs.toFixed(1)} ms\n`);
        figures.push(
          { name: `${name}: CPU a round`, value: cpuMs, unit: 'ms' },
          { name: `${name}: of the smallest`, value: cpuMs / smallest, unit: '' },
        );
      }
    }
  }
  return figures;
}

/** @returns ms of CPU, with garbage collection */
async function round(given: CapacityBenchOptions): Promise<number> {
  const world = new CapacityBenchWorld(given);
  const clock = new ManualClock(BEGIN);
  const patch = (_resource: unknown, { name }: { name: string }, { body }: { body: NodePatch }) =>
    Promise.resolve(world.patch(name, body.status.capacity));
  const publisher = new Publisher({
    client: { patch: patch as never },
    clock,
    log: silentLogger,
    metrics: { observed: () => undefined, written: () => undefined },
    settleMs: SETTLE_MS,
    offerTimeoutMs: PATIENCE_MS,
    signal: new AbortController().signal,
  });
  const rounds = async (count: number) => {
    for (let left = count; left > 0; left--) {
      clock.advanceTo(clock.now() + INTERVAL_MS);
      await publisher.publish(world.sight(clock.now()));
    }
  };
  await rounds(CALM_ROUNDS);
  const before = process.cpuUsage();
  await rounds(ROUNDS);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000 / ROUNDS;
}

interface NodePatch {
  status: { capacity: Record<string, string | null> };
}
