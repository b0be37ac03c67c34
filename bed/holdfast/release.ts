import { copyFile, mkdtemp, readFile, rename, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { cachedFolder } from '../build/cache.js';
import { PLUGIN_FILE } from '../network/open-pod-networks.js';
import type { Manifest } from '../control-plane/objects.js';
import { capture } from '../processes/processes.js';
import { readInstallation } from './manifests.js';

const ROOT = join(import.meta.dirname, '..', '..');

/** A version of Holdfast with its manifests and its built processes. */
export interface Release {
  /** For people. */
  readonly name: string;
  /** The folder of its sources, with `dist/`. */
  readonly folder: string;
}

/** The version of this tree, built by `buildHoldfast`. */
export const CURRENT_RELEASE: Release = { name: 'this version', folder: ROOT };

/** The version from which users upgrade to this one. A new release replaces this commit by that of its predecessor's tag. */
export const PREVIOUS = { name: 'the previous release', commit: 'f513156f20062e1ff4228cabc06decb92976ee7a' } as const;

/** The bundle that starts all processes. */
export function executableOf({ folder }: Release): string {
  return join(folder, 'dist', 'holdfast.js');
}

/**
 * The previous release: its files from the history of this repository, built once and then kept in the cache.
 * @returns the reason and what to do if the history does not contain it
 */
export async function previousRelease(): Promise<Release | string> {
  const { name, commit } = PREVIOUS;
  const reason = await missingHistory(commit);
  if (reason !== undefined) return reason;
  const folder = await cachedFolder(`release-${commit.slice(0, 12)}`, async (scratch) => {
    await checkOut(commit, scratch);
    await linkPackages(scratch);
    await capture(process.execPath, ['build.js'], { cwd: scratch });
    await rm(join(scratch, 'node_modules'), { recursive: true });
  });
  return { name, folder };
}

/** The objects that an installation of the previous release applied, or the reason why its commit cannot be read. */
export async function previousInstallation(): Promise<Manifest[] | string> {
  const reason = await missingHistory(PREVIOUS.commit);
  if (reason !== undefined) return reason;
  const scratch = await mkdtemp(join(tmpdir(), 'holdfast-release-'));
  try {
    await checkOut(PREVIOUS.commit, scratch, ['manifests']);
    return await readInstallation(join(scratch, 'manifests'));
  } finally {
    await rm(scratch, { recursive: true });
  }
}

/** @returns why a commit cannot be read; undefined if it can */
export async function missingHistory(commit: string, repository = ROOT): Promise<string | undefined> {
  const git = (...args: string[]) => capture('git', args, { cwd: repository });
  try {
    await git('cat-file', '-e', `${commit}^{commit}`);
    return undefined;
  } catch {
    const wanted = `the previous release is commit ${commit}`;
    const isShallow = await git('rev-parse', '--is-shallow-repository').catch(() => undefined);
    if (isShallow === undefined) return `${wanted}, but this is no git repository: clone it with its history`;
    if (isShallow.trim() === 'true') return `${wanted}, but this clone is shallow: run "git fetch --unshallow"`;
    return `${wanted}, but this repository does not contain it: fetch it, or name another one in bed/holdfast/release.ts`;
  }
}

/** @param paths all by default */
async function checkOut(commit: string, folder: string, paths: readonly string[] = []): Promise<void> {
  const archive = join(folder, 'sources.tar');
  await capture('git', ['archive', `--output=${archive}`, commit, ...paths], { cwd: ROOT });
  await capture('tar', ['-xf', archive, '-C', folder]);
  await rm(archive);
}

/** Gives a release its npm packages: ours if its lock file names the same versions, otherwise those that npm installs. */
async function linkPackages(folder: string): Promise<void> {
  const [theirs, ours] = await Promise.all([folder, ROOT].map(bundledPackages));
  if (theirs === ours) await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  else await capture('npm', ['ci', '--no-audit', '--no-fund'], { cwd: folder });
}

/** The packages of a lock file that decide what a build contains: those of the bundles, and the bundler. */
async function bundledPackages(folder: string): Promise<string> {
  const lock = JSON.parse(await readFile(join(folder, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { version?: string; dev?: boolean }>;
  };
  return Object.entries(lock.packages)
    .filter(([path, { dev = false }]) => path !== '' && (!dev || path === 'node_modules/esbuild'))
    .map(([path, { version = '' }]) => `${path}@${version}`)
    .join('\n');
}

const flagsByProcess = new Map<string, Promise<ReadonlySet<string>>>();

/** The arguments without the flags that a release does not know. This version gets all, so that it reports wrong ones. */
export async function knownArgs(release: Release, process: string, args: readonly string[]): Promise<string[]> {
  if (release === CURRENT_RELEASE) return [...args];
  const key = `${release.folder} ${process}`;
  const flags = flagsByProcess.get(key) ?? readFlags(release, process);
  flagsByProcess.set(key, flags);
  const known = await flags;
  return args.filter((arg) => known.has(arg.replace(/=.*/s, '')));
}

async function readFlags(release: Release, name: string): Promise<ReadonlySet<string>> {
  const help = await capture(process.execPath, [executableOf(release), name, '--help']);
  return new Set(help.match(/^ {2}--[a-z0-9-]+/gm)?.map((flag) => flag.trim()));
}

/** Installs the plugin of a release by renaming, as the agent's init container does. */
export async function installPlugin(release: Release, cniBin: string): Promise<void> {
  const scratch = join(cniBin, '.holdfast-installing');
  await copyFile(join(release.folder, 'dist', 'cni', PLUGIN_FILE), scratch);
  await rename(scratch, join(cniBin, 'holdfast'));
}
