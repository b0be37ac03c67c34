import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { InstalledCluster } from '../../cli/testing/installed-cluster.js';
import { EVERYTHING } from '../../cli/testing/installed-objects.js';
import { INSTALLED_KINDS } from '../../cli/uninstall/plan.js';
import { uninstall } from '../../cli/uninstall/uninstall.js';
import { type Manifest, readManifests } from '../../bed/control-plane/objects.js';
import { MANIFESTS, readKustomization } from '../../bed/holdfast/manifests.js';
import { GO_TOOL_TIMEOUT_MS, goTool } from '../go-tools.js';
import { VARIANTS, helmTemplate, kustomizeBase } from '../../manifests/testing/render.js';

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
      it(`finds the processes and policies that ${tool} creates: ${name}`, async () => {
        const rendered = (await render()).filter((object) => !kept.some((other) => nameOf(other) === nameOf(object)));
        const found = rendered.filter(({ kind }) => INSTALLED_KINDS.some((each) => each.kind === kind));
        const cluster = new InstalledCluster([...kept, ...rendered]);
        expect(await uninstall(EVERYTHING, cluster.deps())).to.equal(false);
        expect(cluster.logged[0]).to.include(`still installed (${found.length})`);
      });
    }
  }

  it('removes with --everything all that the tools keep, except the kind of claims', async () => {
    const claims = await readManifests(join(MANIFESTS, 'crds', 'ipamclaims.yaml'));
    const cluster = new InstalledCluster([...claims, ...kept]);
    expect(await uninstall(EVERYTHING, cluster.deps())).to.equal(true);
    expect(cluster.names()).to.deep.equal(claims.map(nameOf));
  });

  it('is tested with every component', async () => {
    const tested = new Set(Object.values(VARIANTS).flatMap(({ components }) => components));
    expect([...tested]).to.have.members(await readdir(join(MANIFESTS, 'components')));
  });
});

function nameOf({ kind, metadata: { namespace, name } }: Manifest): string {
  return `${kind} ${namespace === undefined ? '' : `${namespace}/`}${name}`;
}
