import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { findFreePorts } from '../bed/processes/ports.js';
import { writeKubeconfig } from '../bed/control-plane/kubeconfig.js';
import { capture } from '../bed/processes/processes.js';
import { until } from '../bed/processes/wait.js';
import { type Workspace, openWorkspace } from '../bed/control-plane/workspace.js';
import { nodeFlags } from '../bed/holdfast/image.js';
import { LEASES } from '../kube/leader-election.js';
import { ADDRESS_LEASES, IPAM_CLAIMS, VIRTUAL_MACHINES } from '../kube/resources.js';
import { ObjectTracker } from '../kube/testing/object-tracker.js';
import { nodeOfImage } from '../test/image/node.js';
import type { Figure } from './report.js';
import { MemoryApiServer } from './scale/api-server.js';
import type { LongestBlocks } from './scale/block-watch.js';
import { newVm, storeCluster, storeReleasedLeases } from './scale/cluster.js';
import { usageOf } from './usage.js';

/** Probes and the renewal of the Lease wait so long. */
const LONGEST_BLOCK_MS = 200;
const READY_MS = 900_000;
/** How long each leader is watched with nothing to do, in which a Lease that is not renewed is lost. */
const WATCHED_MS = 30_000;
const PROBE_MS = 20;
/** As many as pods end in the largest cluster. */
const EXPIRIES_PER_SECOND = 2_000;
type LeaderName = 'controller' | 'ipam';
const BLOCK_WATCH = join(import.meta.dirname, 'scale', 'block-watch.ts');

/** Measures leaders that take over a cluster with so many running VMs, all of which have what they need. */
export async function benchScale(vms: number): Promise<Figure[]> {
  return await withServer(async (served) => {
    storeCluster(served.tracker, vms);
    return [...(await measureLeader('controller', vms, served)), ...(await measureLeader('ipam', vms, served))];
  });
}

/** Measures how fast `holdfast ipam` deletes the leases of ordinary pods whose cool-down is over. */
export async function benchExpiry(leases: number): Promise<Figure[]> {
  return await withServer(async (served) => {
    const { tracker } = served;
    storeCluster(tracker, 0);
    storeReleasedLeases(tracker, leases);
    const { child, ready } = await startLeader('ipam', served);
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

interface Served {
  readonly kubeconfig: string;
  readonly workspace: Workspace;
  readonly tracker: ObjectTracker;
  readonly server: MemoryApiServer;
}

export async function withServer(measure: (served: Served) => Promise<Figure[]>): Promise<Figure[]> {
  await capture(process.execPath, ['build.js']);
  const workspace = await openWorkspace({});
  const [port = 0] = await findFreePorts(1);
  const tracker = new ObjectTracker();
  const { servingKey: key, servingCert: cert, caBundle } = workspace.certificates;
  const server = await MemoryApiServer.start(tracker, port, { key, cert });
  const access = { server: `https://127.0.0.1:${port}`, caBundle };
  const kubeconfig = await writeKubeconfig(join(workspace.workDir, 'kubeconfig'), access, 'token');
  try {
    return await measure({ kubeconfig, workspace, tracker, server });
  } finally {
    await server.stop();
    await workspace.close();
  }
}

export async function startLeader(name: LeaderName, { kubeconfig, workspace }: Served) {
  const [health = 0, metrics = 0, validation = 0] = await findFreePorts(3);
  const certs = dirname(workspace.certificates.servingCert);
  const flags = [
    `--kubeconfig=${kubeconfig}`,
    `--health-bind-address=127.0.0.1:${health}`,
    `--metrics-bind-address=127.0.0.1:${metrics}`,
    '--metrics-secure=false',
    '--leader-elect',
    ...(name === 'ipam' ? [`--validation-bind-address=127.0.0.1:${validation}`, `--validation-cert-dir=${certs}`] : []),
  ];
  const args = [...(await nodeFlags()), `--import=${BLOCK_WATCH}`, 'dist/holdfast.js', name, ...flags];
  const BLOCKS_FILE = join(workspace.workDir, `${name}-blocks.json`);
  const child = workspace.processes.start({ name, command: await nodeOfImage(), args, env: { BLOCKS_FILE } });
  const isReady = async () => {
    child.assertRunning();
    return (await fetch(`http://127.0.0.1:${health}/readyz`)).ok;
  };
  const ready = () => until(`${name} to be ready`, isReady, { timeoutMs: READY_MS, everyMs: 100 });
  return { child, ready, blocksFile: BLOCKS_FILE, healthUrl: `http://127.0.0.1:${health}/healthz` };
}

async function measureLeader(name: LeaderName, vms: number, served: Served): Promise<Figure[]> {
  const { tracker, server } = served;
  server.requests.clear();
  const began = performance.now();
  const { child, ready, blocksFile, healthUrl } = await startLeader(name, served);
  const terms = watchTerms(tracker, `holdfast-${name}`);
  // nothing waits for a process that loads its code
  const probe = watchHealth(healthUrl, () => process.kill(child.pid, 'SIGUSR2'));
  await ready();
  const readySeconds = (performance.now() - began) / 1000;
  if (name === 'controller') await createLateVm(tracker, vms);
  const doneSeconds = (performance.now() - began) / 1000;
  await pause(WATCHED_MS);
  const slowestMs = await probe.slowestMs();
  const { wallMs, cpuMs } = JSON.parse(await readFile(blocksFile, 'utf8')) as LongestBlocks;
  const { rssMiB, peakMiB, cpuSeconds } = await usageOf(child.pid);
  const writes = [...server.requests].filter(([kind]) => !/^GET | leases$/.test(kind));
  const lost = terms.stop() - 1;
  await child.stop();
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
    { name: `${title}: writes`, value: writes.reduce((sum, [, count]) => sum + count, 0), unit: '' },
    { name: `${title}: RSS, peak`, value: peakMiB, unit: 'MiB' },
    { name: `${title}: RSS afterwards`, value: rssMiB, unit: 'MiB' },
    { name: `${title}: CPU`, value: cpuSeconds, unit: 's' },
  ];
}

/** Creates a VM without a claim, and waits for the claim. */
async function createLateVm(tracker: ObjectTracker, number: number): Promise<void> {
  const { namespace, name } = tracker.create(VIRTUAL_MACHINES, newVm(number)).metadata;
  const hasClaim = () => tracker.find(IPAM_CLAIMS, { namespace, name: `${name}.data` }) !== undefined;
  await until('the claim of a new VM', hasClaim, { timeoutMs: READY_MS });
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
      const isAnswered = await fetch(url).then(({ ok }) => ok, () => false); // prettier-ignore
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
