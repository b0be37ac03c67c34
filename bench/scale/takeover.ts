import { setTimeout as pause } from 'node:timers/promises';
import { until } from '../../bed/processes/wait.js';
import { IPAM_CLAIMS, VIRTUAL_MACHINES } from '../../kube/resources.js';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import type { ObjectTracker } from '../../kube/testing/object-tracker.js';
import type { Figure } from '../report.js';
import { LONGEST_BLOCK_MS, READY_MS, type Served, startPart } from './part-process.js';
import { newClaimOf, newVm } from './cluster.js';

export const SERVED_SECONDS = 2;
const EMPTY_SECONDS = 60;
/** When it is ready, a replica prepares its work before it is a candidate. */
export const PREPARED_MS = 10_000;
/** A queue stays empty for so long only if no more keys are added. */
const EMPTY_MS = 500;

/** What shows that a leader works. */
export const SERVICES = {
  controller: { what: 'a new VM has its claim', serve: serveVm },
  ipam: { what: 'a new claim has its address', serve: serveClaim },
};

/** Measures a replica that waits with full caches while the leader stops, as in a roll-out. The leader gives its Lease back when it stops. */
export async function measureTakeover(name: 'controller' | 'ipam', vms: number, served: Served): Promise<Figure[]> {
  const leader = await startPart(name, served);
  await leader.ready();
  const next = await startPart(name, served);
  await next.ready();
  await pause(PREPARED_MS);
  process.kill(next.child.pid, 'SIGUSR2'); // forgets blocks of its start
  const began = performance.now();
  const seconds = () => (performance.now() - began) / 1000;
  const stopped = leader.child.stop();
  await SERVICES[name].serve(served.tracker);
  const servedSeconds = seconds();
  const emptySeconds = ((await untilEmpty(next.metricsUrl)) - began) / 1000;
  await stopped;
  const { wallMs, cpuMs } = await next.longestBlocks();
  await next.child.stop();
  const title = `scale: ${name}, ${vms} VMs, takeover`;
  return [
    {
      name: `${title}: ${SERVICES[name].what} after`,
      value: servedSeconds,
      unit: 's',
      target: { atMost: SERVED_SECONDS },
    },
    { name: `${title}: the queue is empty after`, value: emptySeconds, unit: 's', target: { atMost: EMPTY_SECONDS } },
    { name: `${title}: longest block`, value: wallMs, unit: 'ms', target: { atMost: LONGEST_BLOCK_MS } },
    { name: `${title}: longest block, CPU time`, value: cpuMs, unit: 'ms', target: { atMost: LONGEST_BLOCK_MS } },
  ];
}

/** Creates a VM without a claim, and waits for the claim. */
export async function serveVm(tracker: ObjectTracker): Promise<void> {
  const { namespace, name } = tracker.create(VIRTUAL_MACHINES, newVm(tracker.version)).metadata;
  const hasClaim = () => tracker.find(IPAM_CLAIMS, { namespace, name: `${name}.data` }) !== undefined;
  await until('the claim of a new VM', hasClaim, { timeoutMs: READY_MS });
}

/** Creates a claim, and waits for its address. */
async function serveClaim(tracker: ObjectTracker): Promise<void> {
  const vm = tracker.create(VIRTUAL_MACHINES, newVm(tracker.version));
  const { namespace, name } = tracker.create(IPAM_CLAIMS, newClaimOf(vm) as IPAMClaim).metadata;
  const hasAddress = () => tracker.find(IPAM_CLAIMS, { namespace, name })?.status?.ips?.length === 1;
  await until('the address of a new claim', hasAddress, { timeoutMs: READY_MS });
}

/** Waits until no key waits for a while. @returns since when, as `performance.now()` */
export async function untilEmpty(metricsUrl: string, emptyMs = EMPTY_MS): Promise<number> {
  let since = performance.now();
  const isEmpty = async () => {
    if ((await queueDepth(metricsUrl)) > 0) since = performance.now();
    return performance.now() - since >= emptyMs;
  };
  await until('an empty queue', isEmpty, { timeoutMs: READY_MS, everyMs: 50 });
  return since;
}

/** Returns how many keys wait, in all queues of a process. */
async function queueDepth(metricsUrl: string): Promise<number> {
  const text = await (await fetch(metricsUrl)).text();
  const depths = [...text.matchAll(/^holdfast_queue_depth\{.*\} (\d+)$/gm)].map(([, depth]) => Number(depth));
  if (depths.length === 0) throw new Error('no metric holdfast_queue_depth');
  return depths.reduce((sum, depth) => sum + depth, 0);
}
