import { execFileSync } from 'node:child_process';
import { copyFile, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseDocument, stringify } from 'yaml';
import { goTool } from '../test/go-tools.js';
import { repack } from './archives.js';
import { NO_REPOSITORY, type ReleaseSettings } from './settings.js';

/** Renders `install.yaml`, `crds.yaml` and the CRD of claims, which is apart because a cluster may have one that nobody may overwrite. */
export async function renderManifests(tree: string, target: string, settings: ReleaseSettings): Promise<void> {
  const kustomize = await goTool('kustomize');
  const render = (folder: string) =>
    execFileSync(kustomize, ['build', folder], { encoding: 'utf8', maxBuffer: 1 << 26 });
  const overlay = join(tree, 'manifests', 'release');
  await mkdir(overlay);
  const images = [{ name: 'holdfast', newName: settings.imageName, newTag: settings.version }];
  await writeFile(join(overlay, 'kustomization.yaml'), stringify({ resources: ['../base'], images }));
  await writeFile(join(target, 'install.yaml'), render(overlay));
  await writeFile(join(target, 'crds.yaml'), render(join(tree, 'manifests', 'crds')));
  await copyFile(join(tree, 'manifests', 'crds', 'ipamclaims.yaml'), join(target, 'ipamclaims-crd.yaml'));
}

/** Packs the Helm chart, whose default image becomes that of the release. */
export async function packChart(tree: string, target: string, settings: ReleaseSettings, time: number): Promise<void> {
  const chart = join(tree, 'manifests', 'chart');
  const values = parseDocument(await readFile(join(chart, 'values.yaml'), 'utf8'));
  const [, registry = '', repository = ''] = /^(?:([^/]*[.:][^/]*)\/)?(.*)$/.exec(settings.imageName) ?? [];
  values.setIn(['image', 'registry'], registry);
  values.setIn(['image', 'repository'], repository);
  await writeFile(join(chart, 'values.yaml'), values.toString({ lineWidth: 0 }));
  for (const file of ['files/components/prometheus-operator/rules.yaml', 'Chart.yaml', 'templates/NOTES.txt'])
    await linkRelease(join(chart, file), settings);
  execFileSync(await goTool('helm'), ['package', chart, '--destination', target], { stdio: 'pipe' });
  await repack(join(target, chartFile(settings.version)), time);
}

/** Links lead to the pages of the same version. */
async function linkRelease(file: string, { repository, version }: ReleaseSettings): Promise<void> {
  const text = await readFile(file, 'utf8');
  const linked = text.replaceAll(/(?<=\/(?:blob|raw)\/)main(?=\/)/g, `v${version}`);
  await writeFile(file, linked.replaceAll(NO_REPOSITORY, repository));
}

/** Messages link to the pages of the repository, in this version: `docsUrl`. */
export async function linkMessages(stage: string, { repository }: ReleaseSettings): Promise<void> {
  const file = join(stage, 'process', 'docs-url.ts');
  const text = await readFile(file, 'utf8');
  await writeFile(file, text.replace(NO_REPOSITORY, repository));
}

export function chartFile(version: string): string {
  return `holdfast-${version}.tgz`;
}
