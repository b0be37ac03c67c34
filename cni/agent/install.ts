import { randomBytes } from 'node:crypto';
import { open, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf } from '../../kube/errors.js';
import { writeAtomically } from './atomic-write.js';

/** The plugin's name, as in `"ipam": {"type": "holdfast"}` of NADs. */
const NAME = 'holdfast';
/** Node's names of architectures, with those of Go. */
const ARCHITECTURES: Readonly<Record<string, string>> = { x64: 'amd64', arm64: 'arm64' };

export interface InstallOptions {
  /** The folder with the plugin's binaries, one for each architecture. */
  readonly from: string;
  /** The runtime's folder of CNI plugins. */
  readonly binDir: string;
  /** The value of `process.arch`. */
  readonly arch: string;
}

/**
 * Installs the plugin for the runtime. The file is replaced atomically, because runtimes may call it at any moment.
 * @returns whether the file has changed
 * @throws {Error} naming the flag
 */
export async function installPlugin({ from, binDir, arch }: InstallOptions): Promise<boolean> {
  const architecture = ARCHITECTURES[arch];
  if (architecture === undefined) {
    throw new Error(
      `--cni-bin-dir: no CNI plugin for architecture ${arch}; available: ${Object.keys(ARCHITECTURES).join(', ')}`,
    );
  }
  const target = join(binDir, NAME);
  try {
    const binary = await readFile(join(from, `holdfast-linux-${architecture}`));
    if (await isSame(target, binary)) return false;
    // the leading dot keeps runtimes from taking the file for a plugin
    const temporary = join(binDir, `.${NAME}-${randomBytes(6).toString('hex')}`);
    await writeAtomically(target, binary, { temporary, mode: 0o755 });
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
