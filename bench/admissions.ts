import { type Agent, request } from 'undici';
import type { Pod } from '../api/pod.js';
import { PODS } from '../kube/resources.js';
import { findFreePorts } from '../bed/processes/ports.js';
import type { BedWithHoldfast } from '../bed/environment.js';
import { creationReview, reviewAgent } from '../bed/holdfast/review.js';
import type { Story } from '../bed/story/story.js';
import { until } from '../bed/processes/wait.js';
import { nodeOfImage } from '../test/image/node.js';
import { type LoadResult, runLoad } from './load.js';
import type { Figure } from './report.js';
import { usageOf } from './usage.js';

/** The CPU of an admission, to that of a bare echo by express. */
const CPU_OF_ECHO = 1.25;
/** Where the echo serves 4571 per second, the rate at concurrency 32 must be twice the 1065 of kubevirt/ipam-extensions. */
const RATE_OF_ECHO_AT_32 = (2 * 1065) / 4571;
const P99_MS_AT_8 = 12;
const COUNTS = { 1: 2000, 8: 4000, 32: 6000 } as const;

/** Measures admissions at the webhook's endpoint, compared with an express + TLS echo of the same body. */
export async function benchAdmissions(bed: BedWithHoldfast, story: Story): Promise<Figure[]> {
  const review = JSON.stringify(creationReview(await launcherWithTwoClaims(story), 'bench'));
  const figures: Figure[] = [{ name: 'admission: body', value: review.length / 1024, unit: 'KiB' }];

  const echo = await startEcho(bed);
  const endpoint = `https://127.0.0.1:${String(bed.webhook.ports.webhook)}/mutate-launcher-pods`;
  const admit = async (agent: Agent) => {
    assertPatched(await post(endpoint, review, agent));
  };
  const bounce = async (agent: Agent) => {
    await post(echo.url, review, agent);
  };
  try {
    await measure(bounce, echo.pid, 8, 2000); // warm up both
    await measure(admit, bed.webhook.pid, 8, 2000);
    for (const concurrency of [1, 8, 32] as const) {
      const floor = await measure(bounce, echo.pid, concurrency, COUNTS[concurrency]);
      const ours = await measure(admit, bed.webhook.pid, concurrency, COUNTS[concurrency]);
      figures.push(...figuresOf(concurrency, ours, floor));
    }
  } finally {
    await echo.stop();
  }
  return figures;
}

interface AdmissionMeasurements extends LoadResult {
  cpuMs: number;
}

async function measure(
  operation: (agent: Agent) => Promise<void>,
  pid: number,
  concurrency: number,
  count: number,
): Promise<AdmissionMeasurements> {
  const agent = reviewAgent(concurrency);
  const before = await usageOf(pid);
  const result = await runLoad(() => operation(agent), { count, concurrency });
  const after = await usageOf(pid);
  await agent.close();
  return { ...result, cpuMs: ((after.cpuSeconds - before.cpuSeconds) * 1000) / count };
}

function figuresOf(concurrency: number, ours: AdmissionMeasurements, floor: AdmissionMeasurements): Figure[] {
  const name = (what: string) => `admission: ${what} at ${String(concurrency)}`;
  const atLeast = concurrency === 32 ? { target: { atLeast: RATE_OF_ECHO_AT_32 } } : {};
  return [
    { name: name('rate'), value: ours.perSecond, unit: '/s' },
    { name: name('rate, of the echo'), value: ours.perSecond / floor.perSecond, unit: '', ...atLeast },
    { name: name('p50'), value: ours.p50Ms, unit: 'ms' },
    { name: name('p99'), value: ours.p99Ms, unit: 'ms', ...(concurrency === 8 && { target: { atMost: P99_MS_AT_8 } }) },
    { name: name('p99 of the echo'), value: floor.p99Ms, unit: 'ms' },
    { name: name('CPU'), value: ours.cpuMs, unit: 'ms' },
    { name: name('CPU, of the echo'), value: ours.cpuMs / floor.cpuMs, unit: '', target: { atMost: CPU_OF_ECHO } },
  ];
}

/** Returns a real launcher: 9–10 KB with its two secondary networks. */
export async function launcherWithTwoClaims(story: Story): Promise<Pod> {
  await story.network('blue');
  await story.runVm('bench', { data: 'blue', backup: 'blue' });
  const [launcher] = await story.launchers('bench');
  return story.client.get(PODS, story.ref(launcher!.metadata.name));
}

async function startEcho(bed: BedWithHoldfast): Promise<{ pid: number; url: string; stop: () => Promise<void> }> {
  const [port = 0] = await findFreePorts(1);
  const url = `https://127.0.0.1:${String(port)}/echo`;
  const { servingCert, servingKey } = bed.certificates;
  const args = ['--import=tsx', 'bench/echo-server.ts', servingCert, servingKey, String(port)];
  const child = bed.processes.start({ name: 'echo', command: await nodeOfImage(), args });
  await until('the echo server to answer', async () => {
    const agent = reviewAgent(1);
    try {
      return await post(url, '{}', agent);
    } finally {
      await agent.close();
    }
  });
  return { pid: child.pid, url, stop: () => child.stop() };
}

/** Checks that the answer allows the pod and sets its claim references. @throws {Error} if it does not */
function assertPatched(answer: string): void {
  if (!answer.includes('"allowed":true') || !answer.includes('"patch":')) throw new Error(`not patched: ${answer}`);
}

export async function post(url: string, body: string, dispatcher: Agent): Promise<string> {
  const headers = { 'content-type': 'application/json' };
  const answer = await request(url, { method: 'POST', headers, body, dispatcher });
  return answer.body.text();
}
