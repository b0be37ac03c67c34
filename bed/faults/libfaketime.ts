import { existsSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { cachedFolder } from '../build/cache.js';
import { capture } from '../processes/processes.js';
import { messageOf } from '../../kube/errors.js';

const PACKAGE = 'libfaketime';
const LIBRARY = join('faketime', 'libfaketime.so.1');
/** Where Debian, Ubuntu and Fedora install it. */
const FOLDERS = ['usr/lib/x86_64-linux-gnu', 'usr/lib/aarch64-linux-gnu', 'usr/lib64'];

/**
 * Returns the path of libfaketime: an installed one, or that of this machine's Debian or Ubuntu, which the first use downloads
 * into the cache. Nothing is installed.
 * @throws {Error} that says what to install
 */
export async function findLibfaketime(): Promise<string> {
  const installed = libraryIn('/');
  if (installed !== undefined) return installed;
  try {
    return libraryIn(await cachedFolder(PACKAGE, unpack))!;
  } catch (error) {
    throw new Error(`install the package ${PACKAGE}; it was not downloaded: ${messageOf(error)}`, { cause: error });
  }
}

function libraryIn(root: string): string | undefined {
  return FOLDERS.map((folder) => join(root, folder, LIBRARY)).find((path) => existsSync(path));
}

async function unpack(scratch: string): Promise<void> {
  const download = () => capture('apt-get', ['download', '--quiet', PACKAGE], { cwd: scratch });
  // a container image has no package lists, or old ones
  await download().catch(() => capture('apt-get', ['update', '--quiet']).then(download));
  const archive = (await readdir(scratch)).find((name) => name.endsWith('.deb')) ?? '';
  await capture('dpkg-deb', ['--extract', join(scratch, archive), scratch]);
  if (libraryIn(scratch) === undefined) throw new Error(`${archive} has no ${LIBRARY}`);
}
