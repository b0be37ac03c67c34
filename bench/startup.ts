import { capture } from '../bed/processes/processes.js';
import type { BedWithHoldfast } from '../bed/environment.js';
import { HOLDFAST_NAMESPACE } from '../bed/holdfast/install.js';
import { creationReview, reviewAgent, sendReview } from '../bed/holdfast/review.js';
import { IPAM_CLAIMS, VIRTUAL_MACHINE_INSTANCES } from '../kube/resources.js';
import type { Story } from '../bed/story/story.js';
import { until, untilValue } from '../bed/processes/wait.js';
import { nodeOfImage } from '../test/image/node.js';
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
  const node = await nodeOfImage();
  return medianMs(() => Promise.resolve(() => capture(node, ['-e', '0'])));
}

/** Measures the time from the start of the webhook to its first correct answer. */
async function firstPatch(bed: BedWithHoldfast, story: Story): Promise<number> {
  const [launcher] = await story.launchers('vm0');
  const review = creationReview(launcher!, 'startup');
  const isPatched = async () => {
    const agent = reviewAgent(1);
    const answer = await sendReview(bed.webhook.ports.webhook, review, agent).finally(() => agent.close());
    return answer.patch !== undefined;
  };
  return medianMs(async () => {
    await bed.webhook.stop();
    const kubeconfig = await bed.serviceAccountKubeconfig(HOLDFAST_NAMESPACE, 'holdfast-webhook');
    return async () => {
      await bed.webhook.launch({ kubeconfig });
      await until('the first patch', isPatched, FAST);
    };
  });
}

/** Measures the time from the start of the controller until a missing claim exists. */
function firstClaim(bed: BedWithHoldfast, story: Story): Promise<number> {
  return medianMs(async (run) => {
    await bed.controller.stop();
    const name = `late${String(run)}`;
    await story.createVm(name, { data: 'blue' }, { running: false });
    const kubeconfig = await bed.serviceAccountKubeconfig(HOLDFAST_NAMESPACE, 'holdfast-controller');
    return async () => {
      await bed.controller.launch({ kubeconfig });
      await until(`the claim of ${name}`, () => story.client.find(IPAM_CLAIMS, story.ref(`${name}.data`)), FAST);
    };
  });
}

/** Returns the median time of several runs. @param prepare returns the work that is measured */
async function medianMs(prepare: (run: number) => Promise<() => Promise<unknown>>): Promise<number> {
  const times: number[] = [];
  for (let run = 0; run < RUNS; run++) {
    const work = await prepare(run);
    const began = performance.now();
    await work();
    times.push(performance.now() - began);
  }
  return times.sort((a, b) => a - b)[Math.floor(RUNS / 2)]!;
}
