import { addressSpaceOf } from '../../api/address-pool.js';
import type { ApplyFailure } from './apply.js';
import type { NadChange, Plan } from './plan-types.js';

/** NADs that share addresses. They change together because each must know the allocations of the others. */
export interface MigrationStep {
  readonly space: string;
  readonly changes: readonly NadChange[];
  /** No other NAD or pool uses the address space. */
  readonly alone: boolean;
  /** What the user has to do first: names of failed objects and subjects of conflicts. Empty: the NADs can change. */
  readonly missing: readonly string[];
}

/**
 * Plans the next steps after the leases were created.
 * @param earlier the plan of the first pass, of which writes may have failed too
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

/** Returns the address space of each planned pool and lease. */
function spacesByName(plans: readonly Plan[]): Map<string, string> {
  const spaces = new Map<string, string>();
  for (const { pools, leases } of plans) {
    for (const { pool } of pools) spaces.set(pool.metadata.name, addressSpaceOf(pool));
    for (const { name, request } of leases) spaces.set(name, request.addressSpace);
  }
  return spaces;
}
