import { setTimeout as pause } from 'node:timers/promises';
import { until } from '../../bed/processes/wait.js';
import { LEASES } from '../../kube/leader-election.js';
import { ADDRESS_LEASES } from '../../kube/resources.js';
import type { ObjectTracker } from '../../kube/testing/object-tracker.js';
import { MemoryCgroup } from './memory-cgroup.js';
import type { Figure } from '../report.js';
import { storeCluster, storeReleasedLeases } from './cluster.js';
import { LONGEST_BLOCK_MS, READY_MS, type PartName, type Served, startPart, withServer } from './part-process.js';
import { measureMigrations } from './migrations.js';
import { measureTakeover, serveVm } from './takeover.js';
import { usageOf } from '../usage.js';

/** How long each leader is watched with nothing to do, in which a Lease that is not renewed is lost. */
const WATCHED_MS = 30_000;
const PROBE_MS = 20;
/** As docs/how-to/sizing.md says, up to so many VMs. */
const LIMITS_MIB = [
  { vms: 6_000, controller: 512, ipam: 1024, webhook: 512, guest: 512 },
  { vms: 20_000, controller: 1024, ipam: 1024, webhook: 1024, guest: 1024 },
  { vms: Infinity, controller: 1536, ipam: 1536, webhook: 1536, guest: 1536 },
];
/** As many as pods end in the largest cluster. */
const EXPIRIES_PER_SECOND = 2_000;

/** Measures parts that start in a cluster with so many running VMs, all of which have what they need. */
export async function benchScale(vms: number, claimsOfVm: number): Promise<Figure[]> {
  return await withServer(async (served) => {
    storeCluster(served.tracker, vms, claimsOfVm);
    served.server.prepare();
    const figures: Figure[] = [];
    for (const name of ['controller', 'ipam'] as const) {
      figures.push(...(await measureStart(name, vms, served)), ...(await measureTakeover(name, vms, served)));
      figures.push(...(await measureMigrations(name, vms, served)));
    }
    for (const name of ['webhook', 'guest'] as const) figures.push(...(await measureStart(name, vms, served)));
    return figures;
  });
}

/** Measures how fast `holdfast ipam` deletes the leases of ordinary pods whose cool-down is over. */
export async function benchExpiry(leases: number): Promise<Figure[]> {
  return await withServer(async (served) => {
    const { tracker } = served;
    storeCluster(tracker, 0);
    storeReleasedLeases(tracker, leases);
    const { child, ready } = await startPart('ipam', served);
    await ready();
    let [first, left] = [0, leases];
    const end = tracker.observe(ADDRESS_LEASES, ({ type }) => {
      if (type !== 'DELETED') return;
      first ||= performance.now();
      left--;
    });
    await until('the leases to be deleted', () => left <= 0, { timeoutMs: READY_MS, everyMs: 20 });
    const seconds = (performance.now() - first) / 1000;
    end();
    const { peakMiB, cpuSeconds } = await usageOf(child.pid);
    await child.stop();
    const title = `expiry: ${leases} released leases`;
    return [
      { name: `${title}: deleted`, value: leases / seconds, unit: '/s', target: { atLeast: EXPIRIES_PER_SECOND } },
      { name: `${title}: RSS, peak`, value: peakMiB, unit: 'MiB' },
      { name: `${title}: CPU from the start`, value: cpuSeconds, unit: 's' },
    ];
  });
}

async function measureStart(name: PartName, vms: number, served: Served): Promise<Figure[]> {
  const { tracker, server } = served;
  server.requests.clear();
  const began = performance.now();
  const limitMiB = LIMITS_MIB.find((each) => vms <= each.vms)![name];
  const cgroup = await MemoryCgroup.create(name, limitMiB);
  const { child, ready, longestBlocks, healthUrl } = await startPart(name, served);
  await cgroup.add(child.pid);
  const terms = watchTerms(tracker, `holdfast-${name}`);
  // nothing waits for a process that loads its code
  const probe = watchHealth(healthUrl, () => process.kill(child.pid, 'SIGUSR2'));
  await ready();
  const readySeconds = (performance.now() - began) / 1000;
  if (name === 'controller') await serveVm(tracker);
  const doneSeconds = (performance.now() - began) / 1000;
  await pause(WATCHED_MS);
  const slowestMs = await probe.slowestMs();
  const { wallMs, cpuMs } = await longestBlocks();
  const { rssMiB, peakMiB, cpuSeconds } = await usageOf(child.pid);
  const { writes } = server;
  const lost = Math.max(0, terms.stop() - 1); // the webhook has none
  await child.stop();
  const kills = await cgroup.kills();
  await cgroup.remove();
  const title = `scale: ${name}, ${vms} VMs`;
  return [
    { name: `${title}: ready after`, value: readySeconds, unit: 's' },
    ...(name === 'controller'
      ? [{ name: `${title}: a new VM has its claim after`, value: doneSeconds, unit: 's' }]
      : []),
    { name: `${title}: longest block`, value: wallMs, unit: 'ms', target: { atMost: LONGEST_BLOCK_MS } },
    { name: `${title}: longest block, CPU time`, value: cpuMs, unit: 'ms', target: { atMost: LONGEST_BLOCK_MS } },
    { name: `${title}: slowest answer of /healthz`, value: slowestMs, unit: 'ms' },
    { name: `${title}: times that it lost its Lease`, value: lost, unit: '', target: { atMost: 0 } },
    { name: `${title}: writes`, value: writes, unit: '' },
    { name: `${title}: kills with a limit of ${limitMiB} MiB`, value: kills, unit: '', target: { atMost: 0 } },
    { name: `${title}: memory without files, peak`, value: cgroup.peakMiB, unit: 'MiB' },
    { name: `${title}: RSS, peak`, value: peakMiB, unit: 'MiB' },
    { name: `${title}: RSS afterwards`, value: rssMiB, unit: 'MiB' },
    { name: `${title}: CPU`, value: cpuSeconds, unit: 's' },
  ];
}

/** Counts how often somebody acquires a Lease. */
function watchTerms(tracker: ObjectTracker, name: string) {
  const acquired = new Set<string>();
  const end = tracker.observe(LEASES, ({ object: { metadata, spec: { acquireTime, holderIdentity } = {} } }) => {
    if (metadata.name === name && acquireTime !== undefined && holderIdentity) acquired.add(acquireTime);
  });
  const stop = () => {
    end();
    return acquired.size;
  };
  return { stop };
}

/** Asks for the health of a process all the time, and measures from the first answer on. */
function watchHealth(url: string, hasBegun: () => void) {
  const ended = new AbortController();
  let [slowest, hasAnswered] = [0, false];
  const ask = async () => {
    while (!ended.signal.aborted) {
      const began = performance.now();
      const isAnswered = await fetch(url).then(({ ok }) => ok, () => false); // oxfmt-ignore
      if (isAnswered && hasAnswered) slowest = Math.max(slowest, performance.now() - began);
      if (isAnswered && !hasAnswered) hasBegun();
      hasAnswered ||= isAnswered;
      await pause(PROBE_MS);
    }
    return slowest;
  };
  const asked = ask();
  const slowestMs = () => {
    ended.abort();
    return asked;
  };
  return { slowestMs };
}
