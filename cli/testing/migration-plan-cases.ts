import { expect } from 'chai';
import type { MigrationObservation, Plan } from '../whereabouts/plan-types.js';
import { planMigration } from '../whereabouts/plan.js';
import { whereaboutsNad, observedOf } from './migration-world.js';

export const RANGE = { range: '10.0.0.0/24', gateway: '10.0.0.1', exclude: ['10.0.0.128/25'] };
export const BLUE = whereaboutsNad('a/blue', RANGE);

/** One line each: pools, leases, what is left out, conflicts, and changes that say more than the type. */
export function summary({ pools, leases, leftOut, conflicts, changes }: Plan): string[] {
  return [
    ...pools.map(({ pool, state }) => `${state} pool ${pool.metadata.name}`),
    ...leases.map(
      ({ name, request, state }) =>
        `${state} ${name} of ${request.pool} for ${request.owner.kind} ${request.owner.name}`,
    ),
    ...leftOut.map(({ reason, address, source }) => `left out ${address ?? source}: ${reason}`),
    ...conflicts.map(({ kind, subject }) => `conflict ${kind}: ${subject}`),
    ...changes.filter(({ added }) => added.length > 1).map(({ nad, added }) => `${nad} gets ${added[1] ?? ''}`),
  ];
}

export interface MigrationPlanCase {
  name: string;
  given: Partial<MigrationObservation>;
  expect: string[];
}

/** One test for each row. */
export function itPlansMigrations(rows: MigrationPlanCase[]): void {
  for (const row of rows) {
    it(row.name, () => {
      expect(summary(planMigration(observedOf(row.given)))).to.deep.equal(row.expect);
    });
  }
}

/** What every plan of `BLUE` begins with. */
export const POOL = 'create pool blue.a';
