import { randomBytes } from 'node:crypto';
import { open, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf } from '../../kube/errors.js';

/** As NADs name it: `"ipam": {"type": "holdfast"}`. */
const NAME = 'holdfast';
/** What Node calls an architecture, and what Go calls it. */
const ARCHITECTURES: Readonly<Record<string, string>> = { x64: 'amd64', arm64: 'arm64' };

export interface InstallOptions {
  /** Holds the plugin's binaries, one for each architecture. */
  readonly from: string;
  /** The runtime's folder of CNI plugins. */
  readonly binDir: string;
  /** As `process.arch`. */
  readonly arch: string;
}

/**
 * Puts the plugin where the runtime finds it, as a whole or not at all: runtimes call it at any moment.
 * @returns whether it was another one before
 * @throws {Error} naming the flag
 */
export async function installPlugin({ from, binDir, arch }: InstallOptions): Promise<boolean> {
  const architecture = ARCHITECTURES[arch];
  if (architecture === undefined) {
    throw new Error(
      `--cni-bin-dir: there is no CNI plugin for ${arch}; there are: ${Object.keys(ARCHITECTURES).join(', ')}`,
    );
  }
  const target = join(binDir, NAME);
  try {
    const binary = await readFile(join(from, `holdfast-linux-${architecture}`));
    if (await isSame(target, binary)) return false;
    await replace(target, binary);
    return true;
  } catch (error) {
    throw new Error(`--cni-bin-dir: cannot install the CNI plugin as ${target}: ${messageOf(error)}`, { cause: error });
  }
}

async function isSame(path: string, binary: Buffer): Promise<boolean> {
  try {
    const file = await open(path);
    try {
      const { mode } = await file.stat();
      return (mode & 0o777) === 0o755 && binary.equals(await file.readFile());
    } finally {
      await file.close();
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false;
    throw error;
  }
}

async function replace(path: string, binary: Buffer): Promise<void> {
  // with a dot and without being a plugin's name: nobody takes it for one
  const scratch = join(path, '..', `.${NAME}-${randomBytes(6).toString('hex')}`);
  try {
    const file = await open(scratch, 'wx', 0o600);
    try {
      await file.writeFile(binary);
      await file.chmod(0o755);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(scratch, path);
  } catch (error) {
    await rm(scratch, { force: true });
    throw error;
  }
}
