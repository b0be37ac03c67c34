import { lstat, readlink } from 'node:fs/promises';
import { dirname, join, relative, resolve } from 'node:path';
import type { PluginAlternatives } from '../../../process/agent-config.js';
import { type PluginDirectory, codeOf } from './install.js';

/** As in Linux. */
const MAX_LINKS = 40;

/**
 * Returns the groups of which no plugin can be executed.
 * @throws {Error} if the directory cannot be read
 */
export async function findMissingPlugins(
  directory: PluginDirectory,
  required: readonly PluginAlternatives[],
): Promise<PluginAlternatives[]> {
  const missing: PluginAlternatives[] = [];
  for (const group of required) {
    const found = await Promise.all(group.map((name) => isExecutable(directory, name)));
    if (!found.includes(true)) missing.push(group);
  }
  return missing;
}

/**
 * Follows symbolic links as they are on the node. A link that leaves the directory counts as executable, because its target cannot be
 * seen from a container: k3s links all plugins to a folder of its version.
 */
async function isExecutable({ path, hostPath }: PluginDirectory, name: string): Promise<boolean> {
  let file = name;
  for (let links = 0; links < MAX_LINKS; links++) {
    const seen = join(path, file);
    const found = await lstat(seen).catch(ignoreAbsence);
    if (!found?.isSymbolicLink()) return found?.isFile() === true && (found.mode & 0o111) !== 0;
    const target = resolve(hostPath, dirname(file), await readlink(seen));
    file = relative(hostPath, target);
    if (file === '..' || file.startsWith('../')) return true;
  }
  return false;
}

function ignoreAbsence(error: unknown): undefined {
  const code = codeOf(error);
  if (code !== 'ENOENT' && code !== 'ENOTDIR') throw error;
}
