// Builds a release into a folder: `make release VERSION=1.2.3`, docs/how-to/release.md.
import { spawnSync, execFileSync } from 'node:child_process';
import { mkdir, readdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ROOT } from '../test/source-files.js';
import { checksumsOf, packForNpx, packPlugins } from './archives.js';
import { notesOf, withAbsoluteLinks } from './changelog.js';
import { withNode } from './executable.js';
import { imageBuild, imageFile, missingEngine, resolveBases } from './image.js';
import { krewManifest } from './krew.js';
import { packChart, renderManifests, linkMessages } from './manifests.js';
import { NO_REPOSITORY, type ReleaseSettings, readSettings } from './settings.js';
import { type TreeState, problemsOfTree, readTree, stageTree } from './tree.js';

/** For the page of the release; not one of its files. */
const NOTES = 'release-notes.md';
const CHECKSUMS = 'checksums.txt';

async function main(): Promise<void> {
  const settings = readSettings(process.env);
  const state = await readTree(ROOT, settings.version);
  const problems = [...problemsOfMachine(), ...(settings.isDraft ? [] : problemsOfTree(state, settings.version))];
  const noImage = settings.withImage === false ? 'WITH_IMAGE=no' : missingEngine();
  if (settings.withImage === true && noImage !== undefined) problems.push(`WITH_IMAGE=yes, but ${noImage}`);
  if (problems.length > 0) throw new Error([`cannot release ${settings.version}:`, ...problems].join('\n- '));
  // a release that is killed leaves only this folder, which the next one replaces
  const partial = `${settings.out}.partial`;
  await rm(partial, { recursive: true, force: true });
  await mkdir(partial, { recursive: true });
  const stage = await stageTree(ROOT, settings.version);
  await linkMessages(stage, settings);
  try {
    await build(stage, partial, { settings, state, withImage: noImage === undefined });
  } finally {
    await rm(stage, { recursive: true, force: true });
  }
  await rm(settings.out, { recursive: true, force: true });
  await rename(partial, settings.out);
  await printSummary(settings, noImage);
}

function problemsOfMachine(): string[] {
  const { stdout } = spawnSync('tar', ['--version'], { encoding: 'utf8' });
  return stdout.includes('GNU tar') ? [] : ['tar is not GNU tar, which makes the same archive from the same files'];
}

async function build(
  stage: string,
  target: string,
  { settings, state, withImage }: { settings: ReleaseSettings; state: TreeState; withImage: boolean },
): Promise<void> {
  const { version, repository, imageName: image } = settings;
  const { commit, time } = state;
  say('executables');
  execFileSync(process.execPath, ['build.js'], { cwd: stage, stdio: ['ignore', 'ignore', 'inherit'] });
  const sbom = await withNode(join(stage, 'dist', 'sbom.cdx.json'), settings.pluginPlatforms);
  await writeFile(join(target, `holdfast-${version}-sbom.cdx.json`), sbom);
  say('kubectl plugin');
  const archives = await packPlugins(stage, target, { platforms: settings.pluginPlatforms, time });
  await packForNpx(stage, target, { settings, time });
  await writeFile(join(target, 'holdfast.yaml'), krewManifest(archives, settings));
  say('manifests');
  await renderManifests(stage, target, settings);
  await packChart(stage, target, settings, time);
  if (withImage) say('image');
  const bases = withImage ? await resolveBases(stage) : {};
  if (withImage) {
    const image = imageBuild({ tree: stage, commit, time, bases }, settings, join(target, imageFile(version)));
    execFileSync('docker', image, { stdio: 'inherit' });
  }
  const record = { version, commit, image: `${image}:${version}`, repository, bases };
  await writeFile(join(target, 'release.json'), `${JSON.stringify(record, undefined, 2)}\n`);
  await writeFile(join(target, CHECKSUMS), await checksumsOf(target, []));
  const notes = notesOf(state.changelog, version) ?? 'A draft.';
  await writeFile(join(target, NOTES), `${withAbsoluteLinks(notes, repository, version)}\n`);
}

function say(text: string): void {
  console.log(`--- ${text}`);
}

async function printSummary({ version, out, repository, isDraft }: ReleaseSettings, noImage?: string): Promise<void> {
  for (const file of (await readdir(out)).sort()) {
    const { size } = await stat(join(out, file));
    console.log(`${(size / 1024).toFixed(0).padStart(7)} KiB  ${join(out, file)}`);
  }
  console.log(`Holdfast ${version} is in ${out}.${isDraft ? ' It is a draft: do not publish it.' : ''}`);
  if (noImage !== undefined) console.log(`It has no image: ${noImage}.`);
  if (repository === NO_REPOSITORY)
    console.log(`REPOSITORY is not set, so links lead to ${repository}, which does not exist.`);
}

main().catch((error: unknown) => {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
});
