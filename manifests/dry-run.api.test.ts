import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { parseAllDocuments } from 'yaml';
import { type Manifest, createAll, readManifests, resourceOf } from '../bed/control-plane/objects.js';
import type { ControlPlane } from '../bed/control-plane/control-plane.js';
import { MANIFESTS, readInstallation } from '../bed/holdfast/manifests.js';
import { until } from '../bed/processes/wait.js';
import { messageOf } from '../kube/errors.js';
import { ADDRESS_POOLS, NETWORK_ATTACHMENT_DEFINITIONS } from '../kube/resources.js';
import { EMPTY_SERVER } from './testing/shared-server.js';

const NETWORKS_CRD = join(MANIFESTS, '..', 'bed', 'manifests', 'network-attachment-definitions.yaml');

describe('the manifests, applied to a kube-apiserver with dry-run', function () {
  this.timeout(60_000);
  let plane: ControlPlane;

  EMPTY_SERVER.use(this, (started) => void (plane = started));

  async function tryOut(object: Manifest): Promise<void> {
    const { name, namespace } = object.metadata;
    // server-side apply refuses fields that the kind does not have
    const patch = { type: 'apply', object, fieldManager: 'holdfast-install', force: true } as const;
    await plane.client.patch(resourceOf(object), { name, namespace }, patch, { dryRun: true });
  }

  it('are accepted with all their fields', async () => {
    const crds = await readManifests(join(MANIFESTS, 'crds', 'ipamclaims.yaml'));
    for (const object of [...crds, ...(await readInstallation())]) {
      // the API server rejects namespaced objects if the namespace does not exist
      if (object.kind === 'Namespace') await plane.client.create(resourceOf(object), object);
      await tryOut(object);
    }
  });

  it('are accepted with the objects for hardened clusters in docs/how-to/install.md', async () => {
    const page = await readFile(join(MANIFESTS, '../docs/how-to/install.md'), 'utf8');
    const [, section = ''] = /\n## Hardened clusters\n([^]*?)\n## /.exec(page) ?? [];
    const blocks = [...section.matchAll(/```yaml\n([^]*?)```/g)].map(([, text = '']) => text);
    const objects = blocks.flatMap((text) => parseAllDocuments(text).map((each) => each.toJS() as Manifest));
    expect(objects.map(({ kind }) => kind)).to.deep.equal(['NetworkPolicy', 'FlowSchema', 'FlowSchema']);
    for (const object of objects) await tryOut(object);
  });

  it('are rejected if a field is unknown', async () => {
    const objects = await readManifests(join(MANIFESTS, 'base', 'claims', 'webhook', 'deployment.yaml'));
    const budget = objects.find(({ kind }) => kind === 'PodDisruptionBudget');
    const misspelt = { ...budget!, spec: { minimumAvailable: 1 } };
    const outcome = await tryOut(misspelt).catch(messageOf);
    expect(outcome).to.include('minimumAvailable');
  });

  it('contain samples of networks and a pool that are accepted', async () => {
    await createAll(plane.client, await readManifests(NETWORKS_CRD));
    await createAll(plane.client, await readManifests(join(MANIFESTS, 'crds', 'addresspools.yaml')));
    await until('networks are served', () => plane.client.list(NETWORK_ATTACHMENT_DEFINITIONS));
    await until('pools are served', () => plane.client.list(ADDRESS_POOLS));
    for (const file of ['network.yaml', 'holdfast-network.yaml', 'pool.yaml']) {
      for (const object of await readManifests(join(MANIFESTS, 'samples', file))) {
        const namespace = object.kind === 'NetworkAttachmentDefinition' ? { namespace: 'default' } : {};
        await tryOut({ ...object, metadata: { ...object.metadata, ...namespace } });
      }
    }
  });
});
