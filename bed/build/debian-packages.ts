import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { capture } from '../processes/processes.js';

/** Unpacks packages of this machine's Debian or Ubuntu archive into a folder. Nothing is installed. */
export async function unpackPackages(packages: readonly string[], folder: string): Promise<void> {
  const download = () => capture('apt-get', ['download', '--quiet', ...packages], { cwd: folder });
  // a container image has no package lists, or old ones
  await download().catch(() => capture('apt-get', ['update', '--quiet']).then(download));
  for (const archive of (await readdir(folder)).filter((name) => name.endsWith('.deb'))) {
    await capture('dpkg-deb', ['--extract', join(folder, archive), folder]);
  }
}

/** The packages without which these do not run, and which this machine lacks. */
export async function missingLibraries(packages: readonly string[]): Promise<string[]> {
  const planned = await capture('apt-get', ['install', '--simulate', '--no-install-recommends', ...packages]);
  return [...planned.matchAll(/^Inst (lib\S+)/gm)].map(([, name = '']) => name);
}
