import { setTimeout as pause } from 'node:timers/promises';
import { removeNamespaces } from '../../bed/story/cleanup.js';
import { namespaceUser } from '../../bed/story/users/namespace-user.js';
import { type Story, createNamespace } from '../../bed/story/story.js';
import type { BedWithHoldfast } from '../../bed/environment.js';
import { ATTACKS, type Attack, type Attacker, CONFIG_MAP_WRITES } from './attacks.js';
import { Victim, type VictimLatencies } from './victim.js';
import { percentilesOf } from '../load.js';
import type { Figure } from '../report.js';

const ATTACK_MS = 20_000;
const OLD_VMS = 200;
/** Writes of the attacker that are not answered yet: more of them wait. */
const MAX_IN_FLIGHT = 32;
/** An attack may cost others at most so many times as the same rate of writes to ConfigMaps. */
const MOST_OF_CONFIG_MAPS = 2;
/** The work that an attack left must end before the next measurement. */
const CALM = { claimMs: 1_000, timeoutMs: 180_000 };

/**
 * Measures the claims and launchers of one tenant while another one writes what it may write as fast as it can.
 * @param chosen a part of the names of the attacks
 */
export async function benchHostileWrites(bed: BedWithHoldfast, story: Story, chosen: string): Promise<Figure[]> {
  const victim = await Victim.begin(bed, story, OLD_VMS);
  const figures: Figure[] = [];
  for (const [index, attack] of ATTACKS.filter(({ name }) => name.includes(chosen)).entries()) {
    const namespace = `${story.namespace}-attacker-${index}`;
    await createNamespace(bed.client, namespace);
    const client = await namespaceUser(bed, { namespace, name: 'attacker' }, 'cluster-admin');
    figures.push(...(await runAttack(attack, { client, namespace }, victim)));
    await client.transport.close();
    await removeNamespaces(bed.client, [namespace]);
  }
  await victim.stop();
  return figures;
}

async function runAttack(attack: Attack, attacker: Attacker, victim: Victim): Promise<Figure[]> {
  await attack.prepare?.(attacker);
  await CONFIG_MAP_WRITES.prepare?.(attacker);
  await becomeCalm(victim);
  const compared = await measureDuring({ ...CONFIG_MAP_WRITES, perSecond: attack.perSecond }, attacker, victim);
  const { writeWithoutHoldfast: write, perSecond } = attack;
  const plain = write && (await measureDuring({ perSecond, write }, attacker, victim));
  if (plain) await becomeCalm(victim);
  const attacked = await measureDuring(attack, attacker, victim);
  const title = `hostile: ${attack.name} (${attacked.perSecond.toFixed(0)}/s)`;
  return [
    ...latencies(`${title}: claim ready`, attacked.claims, compared.claims),
    ...latencies(`${title}: launcher admitted`, attacked.admissions, compared.admissions),
    ...(plain
      ? [ratioOf(`${title}: claim ready`, attacked.claims, plain.claims, 'equal writes without Holdfast')]
      : []),
    { name: `${title}: refused`, value: attacked.refused, unit: '', target: { atMost: 0 } },
  ];
}

function latencies(title: string, attacked: readonly number[], compared: readonly number[]): Figure[] {
  const { p50Ms, p99Ms } = percentilesOf(attacked);
  return [
    { name: `${title}, p50`, value: p50Ms, unit: 'ms' },
    { name: `${title}, p99`, value: p99Ms, unit: 'ms' },
    { ...ratioOf(title, attacked, compared, 'ConfigMaps'), target: { atMost: MOST_OF_CONFIG_MAPS } },
  ];
}

function ratioOf(title: string, attacked: readonly number[], compared: readonly number[], baseline: string): Figure {
  const value = percentilesOf(attacked).p99Ms / percentilesOf(compared).p99Ms;
  return { name: `${title}, p99 of that with ${baseline}`, value, unit: '' };
}

async function measureDuring(
  attack: Pick<Attack, 'perSecond' | 'write'>,
  attacker: Attacker,
  victim: Victim,
): Promise<VictimLatencies & { perSecond: number }> {
  const signal = AbortSignal.timeout(ATTACK_MS);
  const [written, found] = await Promise.all([
    writeAtRate((n) => attack.write(attacker, n), attack.perSecond, signal),
    victim.measure(signal),
  ]);
  return { ...found, perSecond: written / (ATTACK_MS / 1000) };
}

/** Starts writes at a constant rate, however long each takes. A rejected write is one, too. @returns how many were answered in time */
async function writeAtRate(write: (n: number) => Promise<unknown>, perSecond: number, signal: AbortSignal) {
  const began = performance.now();
  const running = new Set<Promise<void>>();
  let answered = 0;
  for (let n = 0; !signal.aborted; n++) {
    const waitMs = began + (n * 1000) / perSecond - performance.now();
    if (waitMs > 0) await pause(waitMs);
    while (running.size >= MAX_IN_FLIGHT) await Promise.race(running);
    const one: Promise<void> = write(n)
      .catch(() => undefined)
      .then(() => {
        answered++;
        running.delete(one);
      });
    running.add(one);
  }
  const inTime = answered;
  await Promise.all(running);
  return inTime;
}

async function becomeCalm(victim: Victim): Promise<void> {
  const end = performance.now() + CALM.timeoutMs;
  for (;;) {
    const { claims, refused } = await victim.measure(AbortSignal.timeout(2_000));
    if (refused === 0 && Math.max(...claims) < CALM.claimMs) return;
    if (performance.now() > end) throw new Error('the cluster does not become calm before the attack');
  }
}
