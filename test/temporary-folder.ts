import { rmSync } from 'node:fs';
import { mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const open = new Set<string>();
process.on('exit', () => {
  for (const folder of open) rmSync(folder, { recursive: true, force: true });
});

/** Creates a folder for temporary files, which is removed at the end of this process, also after an interrupt. */
export async function makeTemporaryFolder(prefix: string): Promise<string> {
  const folder = await mkdtemp(join(await realpath(tmpdir()), prefix));
  open.add(folder);
  return folder;
}

/** Removes such a folder before the end. */
export async function removeTemporaryFolder(folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true });
  open.delete(folder);
}
