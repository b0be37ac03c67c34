import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { reviewAgent, creationReview, sendReview } from '../../bed/holdfast/review.js';
import { nodeFlags } from '../../bed/holdfast/image.js';
import { findFreePorts } from '../../bed/processes/ports.js';
import { until } from '../../bed/processes/wait.js';
import { PODS } from '../../kube/resources.js';
import { nodeOfImage } from '../../test/image/node.js';
import type { Figure } from '../report.js';
import { storeCluster } from './cluster.js';
import { type Served, withServer } from './part-process.js';

const RUNS = 9;
const TARGET_MS = 250;
/** Mounts a service account, as in a pod, for this process alone. */
const AS_POD =
  'mount -t tmpfs tmpfs /run && mkdir -p "$ACCOUNT" && cp "$CA" "$ACCOUNT/ca.crt" && printf token > "$ACCOUNT/token" && exec "$@"';
const ACCOUNT = '/run/secrets/kubernetes.io/serviceaccount';

/** Measures the time from the start of `holdfast webhook` to its first right patch, in a cluster with one VM. Needs root. */
export async function benchFirstPatch(): Promise<Figure[]> {
  return await withServer(async (served) => {
    storeCluster(served.tracker, 1);
    const [launcher] = served.tracker.list(PODS);
    const review = creationReview(launcher!, 'first');
    const runs: { wallMs: number; cpuMs: number }[] = [];
    for (let run = 0; run < RUNS; run++) runs.push(await startWebhook(served, review));
    const name = 'start: first right patch of the webhook';
    const median = (of: 'wallMs' | 'cpuMs') => runs.map((run) => run[of]).sort((a, b) => a - b)[RUNS >> 1]!;
    return [
      { name, value: median('wallMs'), unit: 'ms', target: { atMost: TARGET_MS } },
      { name: `${name}, fastest of ${RUNS}`, value: Math.min(...runs.map(({ wallMs }) => wallMs)), unit: 'ms' },
      { name: `${name}, CPU time of the main thread`, value: median('cpuMs'), unit: 'ms' },
    ];
  });
}

async function startWebhook({ workspace, port }: Served, review: object) {
  const [health = 0, metrics = 0, serving = 0] = await findFreePorts(3);
  const { servingCert, caFile } = workspace.certificates;
  const flags = [
    `--health-bind-address=127.0.0.1:${health}`,
    `--metrics-bind-address=127.0.0.1:${metrics}`,
    '--metrics-secure=false',
    `--webhook-bind-address=127.0.0.1:${serving}`,
    `--webhook-cert-dir=${dirname(servingCert)}`,
  ];
  const node = [await nodeOfImage(), ...(await nodeFlags()), join(process.cwd(), 'dist/holdfast.js'), 'webhook', ...flags]; // oxfmt-ignore
  const env = { ACCOUNT, CA: caFile, KUBERNETES_SERVICE_HOST: '127.0.0.1', KUBERNETES_SERVICE_PORT: String(port) }; // oxfmt-ignore
  const agent = reviewAgent(1);
  const began = performance.now();
  const child = workspace.processes.start({
    name: `webhook-${serving}`,
    command: 'unshare',
    args: ['--mount', 'sh', '-c', AS_POD, 'sh', ...node],
    env,
  });
  const isPatched = async () => (await sendReview(serving, review, agent)).patch !== undefined;
  await until('the first patch', isPatched, { everyMs: 2, timeoutMs: 60_000 });
  const wallMs = performance.now() - began;
  const cpuMs = parseInt(await readFile(`/proc/${child.pid}/schedstat`, 'latin1'), 10) / 1e6;
  await agent.close();
  await child.stop();
  return { wallMs, cpuMs };
}
