import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';

/** Receives everything that is built or downloaded once. */
export function cacheFolder(): string {
  return join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'holdfast', 'bin');
}

/**
 * @param name of a folder in the cache, which is there only as a whole
 * @param fill makes its content the first time
 * @returns the path of the folder
 */
export async function cachedFolder(name: string, fill: (scratch: string) => Promise<void>): Promise<string> {
  const folder = join(cacheFolder(), name);
  if (existsSync(folder)) return folder;
  await withScratch(async (scratch) => {
    await fill(scratch);
    await moveTo(folder, scratch);
  });
  return folder;
}

/** Gives a builder a folder to build in and to rename, so that builders running at once never see half a folder. */
export async function withScratch(work: (scratch: string) => Promise<void>): Promise<void> {
  await mkdir(cacheFolder(), { recursive: true });
  const scratch = await mkdtemp(join(cacheFolder(), '.build-'));
  try {
    await work(scratch);
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

export async function moveTo(folder: string, built: string): Promise<void> {
  try {
    await rename(built, folder);
  } catch (error) {
    if (!existsSync(folder)) throw error; // another process has built the same in the meantime
  }
}
