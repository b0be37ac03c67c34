import { isRight } from './access-reviews.js';
import { kustomizeBase } from './render.js';
import type { BedWithHoldfast } from '../../bed/environment.js';
import { HOLDFAST_NAMESPACE } from '../../bed/holdfast/install.js';
import { applyManifests, readInstallation } from '../../bed/holdfast/manifests.js';
import { HoldfastProcess } from '../../bed/holdfast/process.js';

/** Replaces the three processes of the bed and their rights by `holdfast all` and its rights, and puts them back. */
export async function withAllInOne(bed: BedWithHoldfast, work: (all: HoldfastProcess) => Promise<void>): Promise<void> {
  const three = [bed.controller, bed.webhook, bed.ipam];
  const all = new HoldfastProcess(bed, 'all', bed.ipam.ports);
  await Promise.all(three.map((process) => process.stop()));
  try {
    await applyManifests(bed.client, (await kustomizeBase(['all-in-one'])).filter(isRight));
    const kubeconfig = await bed.serviceAccountKubeconfig(HOLDFAST_NAMESPACE, 'holdfast-all');
    await all.start({ kubeconfig, args: ['--leader-elect'] });
    await work(all);
  } finally {
    await all.stop();
    await applyManifests(bed.client, (await readInstallation()).filter(isRight));
    await Promise.all(three.map((process) => process.start()));
  }
}
