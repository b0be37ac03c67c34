import { capture } from '../e2e/bed/processes.js';
import type { BedWithHoldfast } from '../e2e/environment.js';
import { HOLDFAST_NAMESPACE } from '../e2e/holdfast/install.js';
import { creationReview, reviewAgent, sendReview } from '../e2e/holdfast/review.js';
import { IPAM_CLAIMS, VIRTUAL_MACHINE_INSTANCES } from '../kube/resources.js';
import type { Story } from '../e2e/story/story.js';
import { until, untilValue } from '../e2e/bed/wait.js';
import { runLoad } from './load.js';
import type { Figure } from './report.js';

const RUNNING_VMS = 300;
const RUNS = 5;
/** 400 ms and 1 s on a machine where a bare Node.js process takes 64 ms. Machines differ, so the ratio counts. */
const PATCH_OF_BARE = 400 / 64;
const CLAIM_OF_BARE = 1000 / 64;
const FAST = { everyMs: 10, timeoutMs: 60_000 };

/** Measures restarts while 300 VMs run. */
export async function benchStartup(bed: BedWithHoldfast, story: Story): Promise<Figure[]> {
  await story.network('blue');
  const create = (n: number) => story.createVm(`vm${String(n)}`, { data: 'blue' }).then(() => undefined);
  await runLoad(create, { count: RUNNING_VMS, concurrency: 8 });
  await untilValue(
    `${String(RUNNING_VMS)} VMs to run`,
    async () => {
      const { items } = await story.client.list(VIRTUAL_MACHINE_INSTANCES, { namespace: story.namespace });
      return items.filter((vmi) => vmi.status?.phase === 'Running').length;
    },
    (running) => running === RUNNING_VMS,
    { timeoutMs: 600_000, everyMs: 500 },
  );
  const bareMs = await bareStart();
  return [
    { name: 'start-up: bare node', value: bareMs, unit: 'ms' },
    ...figuresOf('first right patch', await firstPatch(bed, story), { bareMs, target: PATCH_OF_BARE }),
    ...figuresOf('first new claim', await firstClaim(bed, story), { bareMs, target: CLAIM_OF_BARE }),
  ];
}

function figuresOf(what: string, ms: number, { bareMs, target }: { bareMs: number; target: number }): Figure[] {
  const name = `start-up: ${what}, ${String(RUNNING_VMS)} running VMs`;
  return [
    { name, value: ms, unit: 'ms' },
    { name: `${name}, of bare node`, value: ms / bareMs, unit: '', target: { atMost: target } },
  ];
}

/** Returns the median of the milliseconds in which Node.js starts and ends without work. */
async function bareStart(): Promise<number> {
  const seconds: number[] = [];
  for (let run = 0; run < RUNS; run++) {
    const began = performance.now();
    await capture(process.execPath, ['-e', '0']);
    seconds.push((performance.now() - began) / 1000);
  }
  return median(seconds) * 1000;
}

/** Measures the time from the start of the webhook to its first correct answer. */
async function firstPatch(bed: BedWithHoldfast, story: Story): Promise<number> {
  const [launcher] = await story.launchers('vm0');
  const review = creationReview(launcher!, 'startup');
  const seconds: number[] = [];
  for (let run = 0; run < RUNS; run++) {
    await bed.webhook.stop();
    const kubeconfig = await bed.serviceAccountKubeconfig(HOLDFAST_NAMESPACE, 'holdfast-webhook');
    const began = performance.now();
    await bed.webhook.launch({ kubeconfig });
    await until(
      'the first patch',
      async () => {
        const agent = reviewAgent(1);
        const answer = await sendReview(bed.webhook.ports.webhook, review, agent).finally(() => agent.close());
        return answer.patch !== undefined;
      },
      FAST,
    );
    seconds.push((performance.now() - began) / 1000);
  }
  return median(seconds) * 1000;
}

/** Measures the time from the start of the controller until a missing claim exists. */
async function firstClaim(bed: BedWithHoldfast, story: Story): Promise<number> {
  const seconds: number[] = [];
  for (let run = 0; run < RUNS; run++) {
    await bed.controller.stop();
    const name = `late${String(run)}`;
    await story.createVm(name, { data: 'blue' }, { running: false });
    const kubeconfig = await bed.serviceAccountKubeconfig(HOLDFAST_NAMESPACE, 'holdfast-controller');
    const began = performance.now();
    await bed.controller.launch({ kubeconfig });
    await until(`the claim of ${name}`, () => story.client.find(IPAM_CLAIMS, story.ref(`${name}.data`)), FAST);
    seconds.push((performance.now() - began) / 1000);
  }
  return median(seconds) * 1000;
}

function median(values: number[]): number {
  return values.sort((a, b) => a - b)[Math.floor(values.length / 2)]!;
}
