import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { resourceOf } from '../../bed/control-plane/objects.js';
import { capture } from '../../bed/processes/processes.js';
import { requestToken } from '../../bed/control-plane/service-accounts.js';
import { HOLDFAST_NAMESPACE } from '../../bed/holdfast/install.js';
import type { BedWithHoldfast } from '../../bed/environment.js';
import { applyManifests, readInstallation } from '../../bed/holdfast/manifests.js';
import { HoldfastProcess } from '../../bed/holdfast/process.js';
import { isRight } from '../../manifests/testing/access-reviews.js';
import { IPAM_CLAIMS } from '../../kube/resources.js';
import { messageOf } from '../../kube/errors.js';
import { CHART, helmTemplate, kustomizeBase } from '../../manifests/testing/render.js';
import { describeOnBed } from '../../bed/story/describe.js';
import { until } from '../../bed/processes/wait.js';

describeOnBed('The all-in-one installation', (story, bed) => {
  it('creates claims, allocates, admits launchers and releases with the service account of its Deployment', async () => {
    await withAllInOne(bed(), async () => {
      await story().addresses.createNetwork('blue', ['10.31.0.0/24']);
      await story().runVm('vm1', { data: 'blue' });
      const mine = await story().addresses.waitForIPs('vm1.data');
      expect(mine).to.have.lengthOf(1);
      await story().deleteVm('vm1', 'Background');
      await until('the claim is deleted', async () => {
        const claims = await story().client.list(IPAM_CLAIMS, { namespace: story().namespace });
        return claims.items.length === 0;
      });
    });
  });
});

describeOnBed('The test of the Helm release', (_story, bed) => {
  it('passes while the webhooks answer, with the rights that the chart gives it, and fails without the webhook', async () => {
    const hooks = (await helmTemplate({})).filter(({ metadata }) => metadata.annotations?.['helm.sh/hook'] === 'test');
    const rights = hooks.filter(isRight);
    await applyManifests(bed().client, rights);
    const tokenFile = join(bed().workDir, 'helm-test.token');
    const account = { namespace: HOLDFAST_NAMESPACE, name: 'holdfast-test' };
    await writeFile(tokenFile, await requestToken(bed().client, account), { mode: 0o600 });
    const caFile = join(bed().workDir, 'helm-test.ca');
    await writeFile(caFile, Buffer.from(bed().caBundle, 'base64'));
    const env = { ...process.env, NODE_EXTRA_CA_CERTS: caFile, API_SERVER: bed().server, TOKEN_FILE: tokenFile };
    const run = () =>
      capture(process.execPath, [join(CHART, 'files', 'test.mjs')], { env: { ...env, WITH_IPAM: 'true' } });
    try {
      await until('the test passes', async () => (await run()).includes('the webhooks answer'));
      await bed().webhook.stop();
      try {
        expect(await run().catch(messageOf)).to.include('failed calling webhook');
      } finally {
        await bed().webhook.start();
      }
    } finally {
      for (const object of rights) await bed().client.delete(resourceOf(object), object.metadata);
    }
  });
});

/** Replaces the three processes of the bed and their rights by `holdfast all` and its rights, and puts them back. */
async function withAllInOne(bed: BedWithHoldfast, work: () => Promise<void>): Promise<void> {
  const three = [bed.controller, bed.webhook, bed.ipam];
  const all = new HoldfastProcess(bed, 'all', bed.ipam.ports);
  await Promise.all(three.map((process) => process.stop()));
  try {
    await applyManifests(bed.client, (await kustomizeBase(['all-in-one'])).filter(isRight));
    const kubeconfig = await bed.serviceAccountKubeconfig(HOLDFAST_NAMESPACE, 'holdfast-all');
    await all.start({ kubeconfig, args: ['--leader-elect'] });
    await work();
  } finally {
    await all.stop();
    await applyManifests(bed.client, (await readInstallation()).filter(isRight));
    await Promise.all(three.map((process) => process.start()));
  }
}
