import { setTimeout as pause } from 'node:timers/promises';
import { REUSE_MS } from '../../addressing/lease/lease-times.js';
import type { Figure } from '../report.js';
import { startPart, withServer } from './part-process.js';
import { storeCluster } from './cluster.js';
import { PodChurn } from './pod-churn.js';
import { usageOf } from '../usage.js';

const NODES = 1_000;
/** Pods that start and end. */
const PER_SECOND = 2_000;
/** The shortest time that the default of `--max-staleness` allows. */
export const COOLDOWN_MS = 60_000;
/** ipam waits so long for more leases that are due. */
const SLACK_MS = 5_000;

/** Returns how many leases are released at most at this rate. @param keptMs how long ipam keeps them after their cool-down */
export function mostReleased(perSecond: number, keptMs: number): number {
  return (perSecond * (COOLDOWN_MS + keptMs + SLACK_MS)) / 1000;
}

/**
 * Measures whether the released leases stay bounded while pods without a claim start and end. Nodes allocate leases that they have
 * released, or, as the worst case, never do.
 */
export async function benchChurn(seconds: number): Promise<Figure[]> {
  return [...(await measure(seconds, true)), ...(await measure(seconds, false))];
}

async function measure(seconds: number, isReused: boolean): Promise<Figure[]> {
  return await withServer(async (served) => {
    const { tracker } = served;
    storeCluster(tracker, 0);
    const churn = new PodChurn(tracker, { nodes: NODES, rate: PER_SECOND, cooldownMs: COOLDOWN_MS, isReused });
    const { child, ready } = await startPart('ipam', served);
    await ready();
    const before = await usageOf(child.pid);
    const ended = new AbortController();
    const running = churn.run(ended.signal);
    await pause(seconds * 1000);
    ended.abort();
    await running;
    const { cpuSeconds, peakMiB } = await usageOf(child.pid);
    await child.stop();
    const title = `churn${isReused ? '' : ', no lease used again'}`;
    const perSecond = churn.starts / seconds;
    const bound = mostReleased(perSecond, isReused ? 0 : REUSE_MS);
    return [
      {
        name: `${title}: pods that started and ended`,
        value: perSecond,
        unit: '/s',
        target: { atLeast: 0.95 * PER_SECOND },
      },
      { name: `${title}: of them with a lease of the node`, value: (100 * churn.reused) / churn.starts, unit: '%' },
      {
        name: `${title}: released leases at the end, of the bound`,
        value: churn.released / bound,
        unit: '',
        target: { atMost: 1 },
      },
      {
        name: `${title}: CPU of ipam for a pod`,
        value: (1000 * (cpuSeconds - before.cpuSeconds)) / churn.starts,
        unit: 'ms',
      },
      { name: `${title}: RSS of ipam, peak`, value: peakMiB, unit: 'MiB' },
    ];
  });
}
