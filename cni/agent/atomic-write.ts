import { open, rename, rm } from 'node:fs/promises';

/** Replaces a file atomically and durably: writes `temporary`, in the same folder, and renames it to `path`. */
export async function writeAtomically(
  path: string,
  data: string | Buffer,
  { temporary, mode }: { temporary: string; mode: number },
): Promise<void> {
  try {
    const file = await open(temporary, 'wx', 0o600);
    try {
      await file.writeFile(data);
      await file.chmod(mode);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}
