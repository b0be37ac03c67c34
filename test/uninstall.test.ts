import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { InstalledCluster } from '../cli/testing/installed-cluster.js';
import { EVERYTHING, PLAIN } from '../cli/testing/installed-objects.js';
import { uninstall } from '../cli/uninstall/uninstall.js';
import { type Manifest, readManifests } from '../bed/control-plane/objects.js';
import { MANIFESTS, readKustomization } from '../bed/holdfast/manifests.js';
import { GO_TOOL_TIMEOUT_MS, goTool } from './go-tools.js';
import { VARIANTS, helmTemplate, kustomizeBase } from '../manifests/testing/render.js';

/** A Certificate of cert-manager, which creates a Secret. */
type Certificate = Manifest & { spec: { secretName: string; secretTemplate?: { labels?: Record<string, string> } } };

describe('kubectl holdfast uninstall', function () {
  this.timeout(30_000);
  let kept: readonly Manifest[] = [];

  before(async function () {
    this.timeout(GO_TOOL_TIMEOUT_MS);
    await Promise.all([goTool('helm'), goTool('kustomize')]);
    kept = await readKustomization(join(MANIFESTS, 'crds'));
  });

  for (const [name, { components, values }] of Object.entries(VARIANTS)) {
    for (const [tool, render] of [
      ['kustomize', () => kustomizeBase(components)],
      ['Helm', () => helmTemplate(values)],
    ] as const) {
      it(`finds every object that ${tool} creates: ${name}`, async () => {
        const rendered = (await render()).filter((object) => !kept.some((other) => nameOf(other) === nameOf(object)));
        const objects = [...rendered, ...rendered.filter(isCertificate).map(secretOf)];
        const claims = await readManifests(join(MANIFESTS, 'crds', 'ipamclaims.yaml'));

        const plain = new InstalledCluster([...claims, ...kept, ...objects]);
        expect(await uninstall(PLAIN, plain.deps())).to.equal(true);
        expect(plain.names(), 'without --everything').to.have.members([...claims, ...kept].map(nameOf));

        const everything = new InstalledCluster([...claims, ...kept, ...objects]);
        expect(await uninstall(EVERYTHING, everything.deps())).to.equal(true);
        expect(everything.names(), 'with --everything').to.deep.equal(claims.map(nameOf));
      });
    }
  }

  it('is tested with every component', async () => {
    const tested = new Set(Object.values(VARIANTS).flatMap(({ components }) => components));
    expect([...tested]).to.have.members(await readdir(join(MANIFESTS, 'components')));
  });
});

function isCertificate(object: Manifest): object is Certificate {
  return object.kind === 'Certificate';
}

function secretOf({ metadata: { namespace }, spec: { secretName: name, secretTemplate } }: Certificate): Manifest {
  const labels = secretTemplate?.labels ?? {};
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name, labels, ...(namespace !== undefined && { namespace }) },
  };
}

function nameOf({ kind, metadata: { namespace, name } }: Manifest): string {
  return `${kind} ${namespace === undefined ? '' : `${namespace}/`}${name}`;
}
