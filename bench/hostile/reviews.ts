import { MAX_NETWORK_ELEMENTS } from '../../api/networks/network-selection.js';
import { NETWORKS_ANNOTATION } from '../../api/names.js';
import { type Pod, podInterfaceName } from '../../api/pod.js';
import { VIRTUAL_MACHINE_INSTANCES } from '../../kube/resources.js';
import type { BedWithHoldfast } from '../../bed/environment.js';
import { creationReview, reviewAgent } from '../../bed/holdfast/review.js';
import type { Story } from '../../bed/story/story.js';
import { vmiManifest } from '../../bed/story/vms/vm.js';
import { launcherWithTwoClaims, post } from '../admissions.js';
import { type LoadResult, runLoad } from '../load.js';
import type { Figure } from '../report.js';

const ATTACKERS = 8;
const COUNT = 1_000;

/** Measures the latency of admissions in another namespace while one tenant keeps sending the most expensive reviews. */
export async function benchHostileReviews(bed: BedWithHoldfast, story: Story): Promise<Figure[]> {
  const endpoint = `https://127.0.0.1:${String(bed.webhook.ports.webhook)}/mutate-launcher-pods`;
  const launcher = await launcherWithTwoClaims(story);
  const hostile = await worstReviews(story, launcher);
  const others = {
    'from the caches': JSON.stringify(creationReview(launcher, 'bench')),
    'with a live read': JSON.stringify(creationReview(withUnknownVmi(launcher), 'bench')),
  };
  const figures: Figure[] = [];
  for (const [name, review] of Object.entries(others)) {
    await measure(endpoint, review);
    const alone = await measure(endpoint, review);
    for (const [attack, body] of Object.entries(hostile)) {
      const attacked = await runDuring(endpoint, body, () => measure(endpoint, review));
      const title = `admission ${name}, p99 while a tenant sends ${attack}`;
      figures.push(
        { name: title, value: attacked.p99Ms, unit: 'ms' },
        { name: `${title}, of the p99 alone`, value: attacked.p99Ms / alone.p99Ms, unit: '' },
      );
    }
  }
  return figures;
}

/** Returns the most expensive reviews, by description. */
async function worstReviews(story: Story, launcher: Pod): Promise<Record<string, string>> {
  const namespace = await story.otherNamespace();
  const names = Array.from({ length: MAX_NETWORK_ELEMENTS }, (_, n) => `n${String(n)}`);
  const networks = Object.fromEntries(names.map((name) => [name, `absent-${name}`]));
  const vmi = vmiManifest({ name: 'worst', namespace, networks });
  const { metadata } = await story.client.create(VIRTUAL_MACHINE_INSTANCES, vmi);
  const reviewWith = (elements: readonly object[]) => {
    const [owner] = launcher.metadata.ownerReferences ?? [];
    const ownerReferences = [{ ...owner!, name: metadata.name, uid: metadata.uid ?? '' }];
    const annotations = { [NETWORKS_ANNOTATION]: JSON.stringify(elements) };
    const pod = { ...launcher, metadata: { ...launcher.metadata, namespace, ownerReferences, annotations } };
    return JSON.stringify(creationReview(pod, 'hostile'));
  };
  return {
    'reviews with as many live reads as are allowed': reviewWith(
      names.map((name) => ({ name: `absent-${name}`, interface: podInterfaceName(name) })),
    ),
    'reviews with 11,000 elements': reviewWith(Array.from({ length: 11_000 }, (_, n) => ({ name: `n${String(n)}` }))),
  };
}

/** Returns the launcher with a VMI that is not cached and must be read live. */
function withUnknownVmi(launcher: Pod): Pod {
  const ownerReferences = (launcher.metadata.ownerReferences ?? []).map((owner) => ({ ...owner, uid: 'younger' }));
  return { ...launcher, metadata: { ...launcher.metadata, ownerReferences } };
}

async function measure(endpoint: string, review: string): Promise<LoadResult> {
  const agent = reviewAgent(1);
  try {
    const send = async () => {
      await post(endpoint, review, agent);
    };
    return await runLoad(send, { count: COUNT, concurrency: 1 });
  } finally {
    await agent.close();
  }
}

/** Runs `act` while several clients keep sending a review. */
async function runDuring<T>(endpoint: string, body: string, act: () => Promise<T>): Promise<T> {
  const agent = reviewAgent(ATTACKERS);
  let isOver = false;
  const attack = async () => {
    while (!isOver) await post(endpoint, body, agent);
  };
  const attacks = Array.from({ length: ATTACKERS }, attack);
  try {
    return await act();
  } finally {
    isOver = true;
    await Promise.all(attacks);
    await agent.close();
  }
}
