import { readdir } from 'node:fs/promises';
import { join, relative, resolve } from 'node:path';

/** The repository's root. */
export const ROOT = resolve(import.meta.dirname, '..');

const NOT_OURS = new Set(['node_modules', 'dist', '.git', '.bed', 'out', 'out.partial']);

/** All files of the repository with this ending, as sorted paths from its root. */
export async function findFiles(ending: string, folder = ROOT): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true });
  const found = await Promise.all(
    entries.map(async (entry) => {
      const path = join(folder, entry.name);
      if (entry.isDirectory()) return NOT_OURS.has(entry.name) ? [] : findFiles(ending, path);
      return entry.name.endsWith(ending) ? [relative(ROOT, path)] : [];
    }),
  );
  return found.flat().sort();
}
