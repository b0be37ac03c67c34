import { CASES } from '../bed/network/migration/cases.js';
import { type MigrationOutcome, observeMigrations, type Traffic } from '../bed/network/migration/wire-migration.js';
import { WireFixture } from '../bed/network/fixture/wire-fixture.js';
import type { Figure } from './report.js';

/** Measures the traffic of a third host during a live migration, for several network settings; skipped without real networks. */
export async function benchMigration(): Promise<Figure[]> {
  const stage = await WireFixture.open();
  if (typeof stage === 'string') {
    process.stderr.write(`  ${stage}\n`);
    return [];
  }
  const figures: Figure[] = [];
  try {
    for (const [index, [name, make]] of Object.entries(CASES).entries()) {
      const segment = `move${String(index)}`;
      const [moved] = await observeMigrations(stage, [{ segment, ...make(segment) }]);
      if (moved?.status !== 'fulfilled') throw moved?.reason;
      process.stderr.write(`  ${name}: ${JSON.stringify(moved.value)}\n`);
      figures.push(...figuresOf(name, moved.value));
    }
  } finally {
    await stage.plane.stop();
  }
  return figures;
}

function figuresOf(name: string, moved: MigrationOutcome): Figure[] {
  const { ipv4, ipv6, switchMoves, connection } = moved;
  return [
    ...trafficOf(`${name}: IPv4`, ipv4),
    ...trafficOf(`${name}: IPv6`, ipv6),
    { name: `${name}: the switch learns the new port too early`, value: switchMoves.before, unit: 'times' },
    { name: `${name}: TCP connections broken, of 1`, value: connection === 'kept' ? 0 : 1, unit: '' },
  ];
}

function trafficOf(name: string, { lost, misdirected, neighbourMoves }: Traffic): Figure[] {
  return [
    { name: `${name}, answered by the target too early`, value: misdirected, unit: 'packets' },
    { name: `${name}, lost before the guest moves`, value: lost.before + lost.setUp + lost.copy, unit: 'packets' },
    { name: `${name}, lost as it moves`, value: lost.after, unit: 'packets' },
    { name: `${name}, the client changes its neighbour entry too early`, value: neighbourMoves.before, unit: 'times' },
  ];
}
