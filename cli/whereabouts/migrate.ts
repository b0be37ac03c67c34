import type { Client } from '../../kube/client.js';
import type { Clock } from '../../kube/clock.js';
import { CommandError } from '../exit-code.js';
import { type OutputFormat, dataLines } from '../output.js';
import type { Terminal } from '../terminal.js';
import { ActivePods } from './active-pods.js';
import { type ApplyResult, type ApplyDeps, createLeases, createPools, reserveConflicts } from './apply.js';
import { readSourceNads } from './nads.js';
import { formatMigrationPlan, formatNextSteps, formatOutlook, formatResult, nextSteps } from './print.js';
import { namespacesWithPools, observeForMigration } from './observe.js';
import type { MigrationObservation, Plan } from './plan-types.js';
import { planMigration } from './plan.js';

/** The default namespace of the objects of whereabouts. */
export const WHEREABOUTS_NAMESPACE = 'kube-system';

export interface MigrateOptions {
  /** Without it nothing is written. */
  readonly apply?: boolean;
  /** Of the objects of whereabouts. */
  readonly namespace: string;
  /** Migrates only this CNI network, and those that share its addresses. */
  readonly network?: string;
  /** Migrates the addresses without conflicts. */
  readonly skipConflicts?: boolean;
  readonly output: OutputFormat;
}

export interface MigrateDeps extends ApplyDeps, Pick<Terminal, 'printStatus'> {
  readonly client: Pick<Client, 'get' | 'list' | 'listAs' | 'create' | 'patch' | 'delete'>;
  readonly clock: Pick<Clock, 'now' | 'wall' | 'sleep'>;
  /** Prints a line of the result. */
  readonly print: (line: string) => void;
}

/** The minimum interval between two lines of progress. */
const PROGRESS_MS = 1_000;

/**
 * Creates pools and leases for the addresses that whereabouts has allocated. It changes no NAD and no object of whereabouts. If it is killed, a
 * second run continues.
 * @returns true if everything was done, or planned, without conflicts and failures
 * @throws {CommandError} if a plan is impossible
 */
export async function migrateWhereabouts(options: MigrateOptions, deps: MigrateDeps): Promise<boolean> {
  const observed = await observeForMigration(deps.client, options.namespace);
  refuseUnknownNetwork(observed, options.network);
  if (observed.ipPools.length === 0) await refuseEmptyNamespace(options, deps);
  const plan = planMigration(observed, options.network, deps.clusterFlags);
  const data = dataLines(options.output, { plan: asJson(plan) });
  if (data === undefined) printLines(formatMigrationPlan(plan), deps);
  if (!options.apply) {
    printLines(data ?? formatOutlook(plan, applyCommandOf(options, deps)), deps);
    return plan.conflicts.length === 0;
  }
  if (plan.conflicts.length > 0 && !options.skipConflicts) {
    printLines(data ?? [], deps);
    deps.printStatus(
      `nothing was written because the plan has conflicts (${plan.conflicts.length}): resolve them, or skip them with --skip-conflicts`,
    );
    return false;
  }
  return applyTwice(plan, observed, options, deps);
}

function printLines(lines: readonly string[], { print }: MigrateDeps): void {
  for (const line of lines) print(line);
}

async function applyTwice(
  plan: Plan,
  observed: MigrationObservation,
  options: MigrateOptions,
  deps: MigrateDeps,
): Promise<boolean> {
  const applied: ApplyResult = { poolsMade: [], leasesMade: [], leasesThere: [], reserved: [], failed: [] };
  await applyPlan(plan, observed, applied, deps);
  // whereabouts may have allocated more addresses meanwhile
  const now = await observeForMigration(deps.client, options.namespace);
  const later = planMigration(now, options.network, deps.clusterFlags);
  const known = new Set([...applied.leasesMade, ...applied.leasesThere]);
  const news = later.leases.filter(({ name, state }) => state !== 'done' || !known.has(name));
  await applyPlan({ ...later, leases: news }, now, applied, deps);
  const made = new Set([...applied.poolsMade, ...applied.leasesMade, ...applied.leasesThere]);
  applied.failed = applied.failed.filter(({ name }) => !made.has(name));
  const conflicts = later.conflicts.length;
  const next = nextSteps(later, plan, applied.failed);
  const result = { plan: asJson(plan), applied, conflicts: later.conflicts, next };
  const { clusterFlags } = deps;
  const lines = () => [...formatResult(applied, clusterFlags), ...formatNextSteps(next, clusterFlags)];
  printLines(dataLines(options.output, result) ?? lines(), deps);
  if (conflicts > 0) deps.printStatus(`conflicts remain (${conflicts}): run the command without --apply to list them`);
  return applied.failed.length === 0 && conflicts === 0;
}

async function applyPlan(
  plan: Plan,
  { pods }: MigrationObservation,
  done: ApplyResult,
  deps: MigrateDeps,
): Promise<void> {
  let told = deps.clock.now();
  const onProgress = (written: number, of: number) => {
    const now = deps.clock.now();
    if (now - told < PROGRESS_MS && written < of) return;
    told = now;
    deps.printStatus(`${written} of ${of} leases`);
  };
  const there = await createPools(plan.pools, deps, done);
  const leases = plan.leases.filter(({ request }) => there.has(request.pool));
  await createLeases(leases, new ActivePods(pods), { ...deps, onProgress }, done);
  await reserveConflicts(plan.conflicts, there, deps, done);
}

/** Without this check, nothing would be left to do for a mistyped name. */
function refuseUnknownNetwork({ nads }: MigrationObservation, network: string | undefined): void {
  if (network === undefined) return;
  const found = readSourceNads(nads);
  const networks = new Set([...found.nads, ...found.conflicts].flatMap(networksOf));
  if (networks.has(network)) return;
  const known = [...networks].sort().join(', ') || 'none';
  throw new CommandError(
    `no NAD with whereabouts has network ${network} (the "name" in its config); known networks: ${known}`,
  );
}

function networksOf(found: { network: string } | { networks: readonly string[] }): readonly string[] {
  return 'network' in found ? [found.network] : found.networks;
}

/** Without this check, all addresses would seem free in a mistyped namespace. */
async function refuseEmptyNamespace(
  { namespace }: MigrateOptions,
  { client, printStatus }: MigrateDeps,
): Promise<void> {
  const nothing = `there are no IPPools in namespace ${namespace}`;
  const others = await namespacesWithPools(client);
  if (others.length > 0) throw new CommandError(`${nothing}, but in ${others.join(', ')}: choose one with --namespace`);
  printStatus(`${nothing}, nor in any other`);
}

/** Returns the present command with --apply. */
function applyCommandOf({ namespace, network }: MigrateOptions, { clusterFlags }: MigrateDeps): string {
  const where = namespace === WHEREABOUTS_NAMESPACE ? '' : ` --namespace ${namespace}`;
  const what = network === undefined ? '' : ` --network ${network}`;
  return `kubectl holdfast migrate whereabouts${where}${what}${clusterFlags} --apply`;
}

/** Leaves out values that JSON cannot represent. */
function asJson({ leases, pools, ...rest }: Plan): object {
  return {
    pools: pools.map(({ pool, network, state }) => ({ name: pool.metadata.name, network, state, spec: pool.spec })),
    leases: leases.map(({ name, network, nad, pod, source, state, request }) => {
      const { address: _address, ...fields } = request;
      return { name, state, network, nad, pod, source, ...fields };
    }),
    ...rest,
  };
}
