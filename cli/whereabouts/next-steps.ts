import { addressSpaceOf } from '../../api/address-pool.js';
import type { ApplyFailure } from './apply.js';
import type { NadChange, Plan } from './plan-types.js';

/** NADs that share addresses. What one gives out the others must know, so they move together. */
export interface MigrationStep {
  readonly space: string;
  readonly changes: readonly NadChange[];
  /** Nobody else has addresses of the space. */
  readonly alone: boolean;
  /** What there is to be done first: names of what has failed, and subjects of conflicts. None: the NADs can move. */
  readonly missing: readonly string[];
}

/**
 * What is to be done once everything is leased that could be.
 * @param plan as it is now; @param earlier of which something may have failed, too
 */
export function nextSteps(plan: Plan, earlier: Plan, failed: readonly ApplyFailure[]): MigrationStep[] {
  const spaces = new Map<string, NadChange[]>();
  for (const change of plan.changes) spaces.set(change.space, [...(spaces.get(change.space) ?? []), change]);
  const places = spacesByName([earlier, plan]);
  return [...spaces].map(([space, changes]) => {
    const pools = plan.pools.filter(({ pool }) => addressSpaceOf(pool) === space);
    const networks = new Set([...changes, ...pools].map(({ network }) => network));
    const missing = [
      ...failed.filter(({ name }) => places.get(name) === space).map(({ name }) => name),
      ...plan.conflicts
        .filter((each) => each.networks.some((network) => networks.has(network)))
        .map(({ subject }) => subject),
    ];
    return { space, changes, alone: changes.length === 1 && networks.size === 1, missing };
  });
}

/** The address space of each pool and lease that was to be made. */
function spacesByName(plans: readonly Plan[]): Map<string, string> {
  const spaces = new Map<string, string>();
  for (const { pools, leases } of plans) {
    for (const { pool } of pools) spaces.set(pool.metadata.name, addressSpaceOf(pool));
    for (const { name, request } of leases) spaces.set(name, request.addressSpace);
  }
  return spaces;
}
