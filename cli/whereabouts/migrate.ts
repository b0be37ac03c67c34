import type { Client } from '../../kube/client.js';
import type { Clock } from '../../kube/clock.js';
import { Refusal } from '../refusal.js';
import { jsonLines } from '../terminal.js';
import { LivePods } from './attachments.js';
import { type Applied, type ApplyDeps, makeLeases, makePools, releaseGone, reserveConflicts } from './apply.js';
import { movingNads } from './nads.js';
import { nextSteps } from './next.js';
import { namespacesOfPools, observe } from './observe.js';
import type { Observed, Plan, PlannedLease } from './plan-types.js';
import { planMigration } from './plan.js';
import { printApplied, printNext, printOutlook, printPlan } from './print.js';

/** Of whereabouts' objects, where its own kubeconfig names none. */
export const DEFAULT_NAMESPACE = 'kube-system';

export interface MigrateOptions {
  /** Without it nothing is written. */
  readonly apply: boolean;
  /** Where whereabouts keeps its objects. */
  readonly namespace: string;
  /** Of this CNI network, and of those that share its addresses. */
  readonly network?: string;
  /** Moves what can be moved though the plan has conflicts. */
  readonly skipConflicts: boolean;
  readonly json: boolean;
}

export interface MigrateDeps {
  readonly client: Pick<Client, 'get' | 'list' | 'listAs' | 'create' | 'patch' | 'delete'>;
  readonly clock: Pick<Clock, 'now' | 'wall' | 'sleep'>;
  readonly width: number;
  /** A line for the user. */
  readonly print: (line: string) => void;
  /** How far it is; not part of the result. */
  readonly tell: (line: string) => void;
}

/** Lines of progress are a second apart. */
const PROGRESS_MS = 1_000;

/**
 * Makes Holdfast know what whereabouts has given out. It deletes and changes nothing of whereabouts, and no NAD; killed at any point, it goes on
 * when it is run again.
 * @returns whether all is done, or planned, that was to be
 * @throws {Refusal} where there is nothing to plan with
 */
export async function migrateWhereabouts(options: MigrateOptions, deps: MigrateDeps): Promise<boolean> {
  const observed = await observe(deps.client, options.namespace);
  refuseUnknownNetwork(observed, options.network);
  if (observed.ipPools.length === 0) await refuseEmptyNamespace(options, deps);
  const plan = planMigration(observed, options.network);
  if (!options.json) for (const line of printPlan(plan)) deps.print(line);
  if (!options.apply) {
    if (options.json) printJson({ plan: asJson(plan) }, deps);
    else for (const line of printOutlook(plan, commandOf(options))) deps.print(line);
    return plan.conflicts.length === 0;
  }
  if (plan.conflicts.length > 0 && !options.skipConflicts) {
    if (options.json) printJson({ plan: asJson(plan) }, deps);
    deps.tell(
      `nothing is written, for the plan has conflicts (${plan.conflicts.length}): resolve them, or pass over them with --skip-conflicts`,
    );
    return false;
  }
  return apply(plan, observed, options, deps);
}

function printJson(value: unknown, { print }: MigrateDeps): void {
  for (const line of jsonLines(value)) print(line);
}

async function apply(plan: Plan, observed: Observed, options: MigrateOptions, deps: MigrateDeps): Promise<boolean> {
  const applied: Applied = { poolsMade: [], leasesMade: [], leasesThere: [], reserved: [], failed: [] };
  await carryOut(plan, observed, applied, deps);
  // whereabouts goes on meanwhile
  const now = await observe(deps.client, options.namespace);
  const later = planMigration(now, options.network);
  const known = new Set([...applied.leasesMade, ...applied.leasesThere]);
  const news = later.leases.filter(({ name, state }) => state !== 'done' || !known.has(name));
  await carryOut({ ...later, leases: news }, now, applied, deps);
  const made = new Set([...applied.poolsMade, ...applied.leasesMade, ...applied.leasesThere]);
  applied.failed = applied.failed.filter(({ name }) => !made.has(name));
  const pods = new LivePods(now.pods);
  const gone = plan.leases.filter(({ name, pod }) => known.has(name) && !pods.has(pod));
  const released = await releaseGone(
    gone.filter(isOfPod),
    applyDeps(deps, () => undefined),
    applied,
  );
  const conflicts = later.conflicts.length;
  const next = nextSteps(later, plan, applied.failed);
  if (options.json) {
    printJson({ plan: asJson(plan), applied: { ...applied, released }, conflicts: later.conflicts, next }, deps);
  } else {
    for (const line of [...printApplied(applied, released), ...printNext(next)]) deps.print(line);
  }
  if (conflicts > 0) deps.tell(`conflicts are left (${conflicts}): a run without --apply says which`);
  return applied.failed.length === 0 && conflicts === 0;
}

async function carryOut(plan: Plan, { pods }: Observed, applied: Applied, deps: MigrateDeps): Promise<void> {
  let told = deps.clock.now();
  const progress = (done: number, of: number) => {
    const now = deps.clock.now();
    if (now - told < PROGRESS_MS && done < of) return;
    told = now;
    deps.tell(`${done} of ${of} leases`);
  };
  const usual = applyDeps(deps, progress);
  const there = await makePools(plan.pools, usual, applied);
  const leases = plan.leases.filter(({ request }) => there.has(request.pool));
  await makeLeases(leases, new LivePods(pods), usual, applied);
  await reserveConflicts(plan.conflicts, there, usual, applied);
}

function applyDeps({ client, clock, width }: MigrateDeps, progress: ApplyDeps['progress']): ApplyDeps {
  return { client, clock, width, progress };
}

function isOfPod({ request }: PlannedLease): boolean {
  return request.owner.kind === 'Pod';
}

/** A name that is mistyped would find everything done. */
function refuseUnknownNetwork({ nads }: Observed, network: string | undefined): void {
  if (network === undefined) return;
  const found = movingNads(nads);
  const networks = new Set([...found.nads, ...found.conflicts].flatMap(networksOf));
  if (networks.has(network)) return;
  const known = [...networks].sort().join(', ') || 'none';
  throw new Refusal(`no NAD of whereabouts is for network ${network} (the name in its config); there are ${known}`);
}

function networksOf(found: { network: string } | { networks: readonly string[] }): readonly string[] {
  return 'network' in found ? [found.network] : found.networks;
}

/** Of a namespace that is mistyped everything would be found free. */
async function refuseEmptyNamespace({ namespace }: MigrateOptions, { client, tell }: MigrateDeps): Promise<void> {
  const nothing = `there are no IPPools in namespace ${namespace}`;
  const others = await namespacesOfPools(client);
  if (others.length > 0) throw new Refusal(`${nothing}, but in ${others.join(', ')}: choose with --namespace`);
  tell(`${nothing}, nor in any other`);
}

/** As the user has called it, but for real. */
function commandOf({ namespace, network }: MigrateOptions): string {
  const where = namespace === DEFAULT_NAMESPACE ? '' : ` --namespace ${namespace}`;
  const what = network === undefined ? '' : ` --network ${network}`;
  return `kubectl holdfast migrate whereabouts${where}${what} --apply`;
}

/** Without what JSON has no words for. */
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
