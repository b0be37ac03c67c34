import { setTimeout as pause } from 'node:timers/promises';
import { applyCertificateStep } from '../../admission/certificate-step.js';
import { readMaterial, writeMaterial } from '../../admission/certificate-store.js';
import { SECRETS } from '../../kube/resources.js';
import { HOLDFAST_NAMESPACE } from '../../bed/holdfast/install.js';
import { until } from '../../bed/processes/wait.js';
import type { Fleet, Member, Role } from './fleet.js';
import { ELECTED, type FaultKind, type PlannedFault } from './plan.js';

/** A process that was ended is started again after this time, as the kubelet does. */
const RESTART_MS = 1_000;
/** Leases last 15 s, and candidates look every 2 s. */
const PAST_LEASE_MS = [18_000, 25_000] as const;
const API_STOPPED_MS = [10_000, 40_000] as const;
const API_DOWN_MS = [1_000, 8_000] as const;
/** More than a write that a stopped process has not received yet. */
const WRITES_PAST_WATCHES = 20;
const STEP_SECONDS = 300;
const STEP_LASTS_MS = 4_000;
const DAY_MS = 24 * 3_600_000;
/** Serving certificates last 90 days and are renewed after two thirds of it. */
const SERVING_AGE_MS = 61 * DAY_MS;
/** A new CA signs after an hour. */
const CA_AGE_MS = 2 * 3_600_000;

/** Faults that may kill a webhook: an admission that was sent to it, or is sent before its endpoint is withdrawn, fails and is retried by its sender. */
export const MAY_FAIL_ADMISSIONS: ReadonlySet<FaultKind> = new Set(['webhook killed', 'replica killed']);

/** What happened; for a spared process it is not what was planned. */
export interface Injected {
  readonly kind: FaultKind;
  readonly target: string;
}

type Injection = (fleet: Fleet, planned: PlannedFault) => Promise<Injected | undefined>;

const INJECTIONS: Readonly<Record<FaultKind, Injection>> = {
  'leader killed': hitLeader,
  'leader stopped past its lease': hitLeader,
  'replica killed': (fleet, { kind, choice }) => killOne(fleet, kind, pickFrom(endable(fleet), choice)),
  'webhook killed': (fleet, { kind, choice }) => killOne(fleet, kind, pickFrom(endable(fleet, 'webhook'), choice)),
  'webhook restarted': (fleet, { kind, choice }) =>
    restartOne(fleet, kind, pickFrom(endable(fleet, 'webhook'), choice)),
  'agent killed': (fleet, { kind, choice }) => killOne(fleet, kind, pickFrom(endable(fleet, 'agent'), choice)),
  'agent restarted': (fleet, { kind, choice }) => restartOne(fleet, kind, pickFrom(endable(fleet, 'agent'), choice)),
  'API server stopped': stopApiServer,
  'API server killed': killApiServer,
  'etcd compacted': async (fleet, planned) => {
    await fleet.bed.etcdCompact();
    return killApiServer(fleet, planned);
  },
  'etcd compacted past stopped watches': compactPastStoppedWatches,
  'certificate renewed': rotate,
  'CA replaced': rotate,
  'clock stepped': stepClock,
};

/** Causes a fault, and waits until its end: processes that were ended run again. @returns undefined if nothing could be hit */
export function inject(fleet: Fleet, planned: PlannedFault): Promise<Injected | undefined> {
  return INJECTIONS[planned.kind](fleet, planned);
}

async function stopApiServer({ apiServer }: Fleet, { kind, length }: PlannedFault): Promise<Injected> {
  await apiServer.pause();
  await pause(between(API_STOPPED_MS, length));
  apiServer.resume();
  return { kind, target: 'kube-apiserver-2' };
}

async function killApiServer({ apiServer }: Fleet, { kind, length }: PlannedFault): Promise<Injected> {
  await apiServer.kill();
  await pause(between(API_DOWN_MS, length));
  await apiServer.start();
  return { kind, target: 'kube-apiserver-2' };
}

/**
 * Stops all leaders and an agent past their leases. Meanwhile their connections end, others write, and the API server restarts after a
 * compaction: neither its watch cache nor etcd has the resourceVersions at which they continue.
 * @throws {Error} unless a watch of each ends with 410 Gone
 */
async function compactPastStoppedWatches(fleet: Fleet, { kind, choice, length }: PlannedFault): Promise<Injected> {
  const { bed, balancer, apiServer } = fleet;
  const leaders = ELECTED.map((role) => until(`a leader of ${role}`, () => fleet.leader(role)));
  const agent = pickFrom(fleet.of('agent'), choice);
  const stopped = [...(await Promise.all(leaders)), ...(agent ? [agent] : [])];
  const before = await Promise.all(stopped.map(expiredWatches));
  const continueAt = Date.now() + between(PAST_LEASE_MS, length);
  try {
    for (const member of stopped) {
      member.isDown = true;
      await member.process.pause();
    }
    await apiServer.kill();
    balancer.disconnect();
    const revision = await currentRevision(fleet);
    await until('more writes', async () => (await currentRevision(fleet)) >= revision + WRITES_PAST_WATCHES);
    await bed.etcdCompact();
    await apiServer.start();
    await until('the load balancer to use the API server', () => balancer.isHealthy(apiServer));
    await pause(Math.max(0, continueAt - Date.now()));
  } finally {
    for (const member of stopped) {
      member.process.resume();
      member.isDown = false;
    }
  }
  await Promise.all(
    stopped.map((member, index) =>
      until(`a watch of ${member.name} to end with 410`, async () => (await expiredWatches(member)) > before[index]!),
    ),
  );
  return { kind, target: stopped.map(({ name }) => name).join(', ') };
}

/** Number of watches of a process that ended with 410 Gone. */
async function expiredWatches({ process }: Member): Promise<number> {
  const counts = (await process.metrics()).matchAll(/^holdfast_kube_watch_ends_total\{.*reason="410".*\} (\d+)$/gm);
  return [...counts].reduce((sum, [, count]) => sum + Number(count), 0);
}

/** etcd's revision. */
async function currentRevision({ bed }: Fleet): Promise<number> {
  return Number((await bed.client.list(SECRETS, { namespace: HOLDFAST_NAMESPACE })).resourceVersion);
}

/** Five minutes forward, five back, and right again: as after a wrong NTP server. */
async function stepClock({ clock }: Fleet, { kind }: PlannedFault): Promise<Injected> {
  if (clock === undefined) throw new Error('the fleet was started without `stepsClock`');
  for (const seconds of [STEP_SECONDS, -STEP_SECONDS, 0]) {
    await clock.step(seconds);
    await pause(STEP_LASTS_MS);
  }
  return { kind, target: 'all processes' };
}

async function hitLeader(fleet: Fleet, { role, kind, length }: PlannedFault): Promise<Injected | undefined> {
  const leader = await until(`a leader of ${role}`, () => fleet.leader(role));
  if (kind === 'leader killed' && !leader.isSpared) return killOne(fleet, kind, leader);
  leader.isDown = true;
  await leader.process.pause();
  await pause(between(PAST_LEASE_MS, length));
  leader.process.resume();
  leader.isDown = false;
  return { kind: 'leader stopped past its lease', target: leader.name };
}

async function killOne(fleet: Fleet, kind: FaultKind, member: Member | undefined): Promise<Injected | undefined> {
  if (member === undefined) return undefined;
  member.isDown = true;
  await member.process.kill();
  return startAgain(fleet, kind, member);
}

async function restartOne(fleet: Fleet, kind: FaultKind, member: Member | undefined): Promise<Injected | undefined> {
  if (member === undefined) return undefined;
  member.isDown = true;
  await fleet.withdraw(member);
  await member.process.stop();
  return startAgain(fleet, kind, member);
}

async function startAgain(fleet: Fleet, kind: FaultKind, member: Member): Promise<Injected> {
  await pause(RESTART_MS);
  await fleet.start(member);
  return { kind, target: member.name };
}

/** Makes a certificate look old, as if it had been created long ago, so that the replicas replace it. */
async function rotate(fleet: Fleet, { kind, choice }: PlannedFault): Promise<Injected> {
  const service = choice < 0.7 ? 'webhook' : 'ipam';
  const ref = { namespace: HOLDFAST_NAMESPACE, name: `holdfast-${service}-tls` };
  const { client } = fleet.bed;
  const names = [`holdfast-${service}.${HOLDFAST_NAMESPACE}.svc`];
  const [step, ageMs] =
    kind === 'CA replaced' ? (['add-authority', CA_AGE_MS] as const) : (['renew-serving', SERVING_AGE_MS] as const);
  let aged = '';
  await until(`the Secret ${ref.name} to be replaced`, async () => {
    const secret = await client.get(SECRETS, ref);
    const made = await applyCertificateStep(step, readMaterial(secret), { now: Date.now() - ageMs, names });
    aged = made.cert;
    await client.replace(SECRETS, writeMaterial(secret, made));
    return true;
  });
  // a new CA signs ten seconds after the configuration trusts it
  const isRenewed = async () => readMaterial(await client.get(SECRETS, ref))?.cert !== aged;
  await until(`${service} to renew its certificate`, isRenewed, { timeoutMs: 120_000, everyMs: 500 });
  return { kind, target: ref.name };
}

/** The processes that a fault may end, of one role or of all. */
function endable({ members }: Fleet, only?: Role): Member[] {
  return members.filter(({ role, isSpared, isDown }) => !isSpared && !isDown && (only ?? role) === role);
}

function pickFrom(members: readonly Member[], choice: number): Member | undefined {
  return members[Math.floor(choice * members.length)];
}

function between([shortest, longest]: readonly [number, number], at: number): number {
  return shortest + (longest - shortest) * at;
}
