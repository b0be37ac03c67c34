import type { BedWithHoldfast } from '../bed/environment.js';
import { withAllInOne } from '../manifests/testing/all-in-one.js';
import { creationReview, reviewAgent } from '../bed/holdfast/review.js';
import type { Story } from '../bed/story/story.js';
import { ClaimCounter, createVm } from './claims.js';
import { assertPatched, launcherWithTwoClaims, post } from './admissions.js';
import { runLoad } from './load.js';
import type { Figure } from './report.js';
import { type Usage, usageOf } from './usage.js';

const VMS = 500;
const ADMISSIONS = 10_000;

/** Measures memory and CPU of all components in one process, idle and after work. */
export async function benchMemory(bed: BedWithHoldfast, story: Story): Promise<Figure[]> {
  const review = JSON.stringify(creationReview(await launcherWithTwoClaims(story), 'bench'));
  const figures: Figure[] = [];
  await withAllInOne(bed, async (all) => {
    const idle = await usageOf(all.pid);
    await runLoad((n) => createVm(story, n).then(() => undefined), { count: VMS, concurrency: 16 });
    const counter = new ClaimCounter(story);
    await counter.reached(2 * VMS + 2);
    await counter.stop();
    const agent = reviewAgent(8);
    const endpoint = `https://127.0.0.1:${String(all.ports.webhook)}/mutate-launcher-pods`;
    const admit = async () => assertPatched(await post(endpoint, review, agent));
    await runLoad(admit, { count: ADMISSIONS, concurrency: 8 });
    await agent.close();
    figures.push(...figuresOf(idle, await usageOf(all.pid)));
  });
  return figures;
}

function figuresOf(idle: Usage, loaded: Usage): Figure[] {
  const after = `after ${String(2 * VMS)} claims and ${String(ADMISSIONS)} admissions`;
  return [
    { name: 'all in one: RSS idle', value: idle.rssMiB, unit: 'MiB' },
    { name: `all in one: RSS ${after}`, value: loaded.rssMiB, unit: 'MiB', target: { atMost: 130 } },
    { name: 'all in one: peak RSS', value: loaded.peakMiB, unit: 'MiB' },
    { name: 'all in one: CPU to ready', value: idle.cpuSeconds, unit: 's' },
    { name: `all in one: CPU ${after}`, value: loaded.cpuSeconds, unit: 's' },
  ];
}
