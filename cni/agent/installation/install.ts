import { randomBytes } from 'node:crypto';
import { constants, lstat, readFile, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf } from '../../../kube/errors.js';
import type { Logger } from '../../../kube/log.js';
import type { InstallConfig } from '../../../process/config/agent-config.js';
import { writeAtomically } from '../atomic-write.js';
import { codeOf } from '../file-errors.js';

/** The plugin's name, as in `"ipam": {"type": "holdfast"}` of NADs. */
export const PLUGIN_NAME = 'holdfast';
/** A file of an installation that was interrupted. The leading dot keeps runtimes from taking it for a plugin. */
const TEMPORARY = /^\.holdfast-[0-9a-f]{12}$/;
/** Node's names of architectures, with those of Go. */
const ARCHITECTURES: Readonly<Record<string, string>> = { x64: 'amd64', arm64: 'arm64' };

/** The runtime's directory of CNI plugins. */
export interface PluginDirectory {
  /** As this process sees it. */
  readonly path: string;
  /** On the node, for messages and symbolic links. */
  readonly hostPath: string;
}

export interface InstallOptions {
  /** The folder with the plugin's binaries, one for each architecture. */
  readonly from: string;
  readonly directory: PluginDirectory;
  /** The value of `process.arch`. */
  readonly arch: string;
}

/**
 * Installs the plugin for the runtime. The file is replaced atomically, because runtimes may call it at any moment.
 * @returns whether the file has changed
 * @throws {Error} that names the file on the node and says what to do; its cause is the error of the file system
 */
export async function installPlugin({ from, directory, arch }: InstallOptions): Promise<boolean> {
  const target = join(directory.path, PLUGIN_NAME);
  try {
    const architecture = ARCHITECTURES[arch];
    if (architecture === undefined) {
      throw new Error(`there is none for architecture ${arch}, only for ${Object.keys(ARCHITECTURES).join(' and ')}`);
    }
    const binary = await readFile(join(from, `holdfast-linux-${architecture}`));
    if (await isSame(target, binary)) return false;
    await removeTemporaryFiles(directory.path);
    const temporary = join(directory.path, `.${PLUGIN_NAME}-${randomBytes(6).toString('hex')}`);
    await writeAtomically(target, binary, { temporary, mode: 0o755 });
    return true;
  } catch (error) {
    const file = join(directory.hostPath, PLUGIN_NAME);
    const remedy = await findRemedy(error, directory.path);
    throw new Error(`cannot install the CNI plugin as ${file} on the node: ${messageOf(error)}${remedy}`, {
      cause: error,
    });
  }
}

/** Whether it is our file: not a link, a pipe or a huge file, and not that of a user who can change it later. */
async function isSame(path: string, binary: Buffer): Promise<boolean> {
  try {
    const found = await lstat(path);
    const isOwn = found.isFile() && found.uid === process.getuid?.() && (found.mode & 0o7777) === 0o755;
    if (!isOwn || found.size !== binary.length) return false;
    const flag = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
    return binary.equals(await readFile(path, { flag }));
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return false;
    throw error;
  }
}

/** What cannot be removed does no harm. */
async function removeTemporaryFiles(directory: string): Promise<void> {
  for (const name of await readdir(directory)) {
    if (TEMPORARY.test(name)) await rm(join(directory, name), { force: true }).catch(() => undefined);
  }
}

async function findRemedy(error: unknown, path: string): Promise<string> {
  switch (codeOf(error)) {
    case 'EACCES':
    case 'EPERM':
      return `. ${await describeAccess(path)}`;
    case 'EROFS':
      return '. The directory is read-only: choose the one in which this distribution keeps CNI plugins';
    case 'ENOSPC':
    case 'EDQUOT':
      return '. Free space on the file system of this directory';
    default:
      return '';
  }
}

/** Says who may write to the directory. */
export async function describeAccess(path: string): Promise<string> {
  try {
    const { uid, mode } = await stat(path);
    const permissions = (mode & 0o777).toString(8);
    if (uid === process.getuid?.())
      return 'This user owns the directory: SELinux, AppArmor or a file attribute denies access';
    return `The directory belongs to user ${uid} with mode ${permissions}: make root its owner, or give the container CAP_DAC_OVERRIDE`;
  } catch {
    return 'Check the owner and the mode of the directory';
  }
}

/**
 * Installs the plugin, as the init container of the agent. If it cannot, but the plugin of another version is present, it succeeds:
 * the agent then serves the pods of the node with that plugin, and says that it is not ready.
 * @param plugins folder of the plugin's binaries; default: the build output
 * @returns the exit code
 */
export async function runInstallation(
  config: InstallConfig,
  log: Logger,
  plugins = join(import.meta.dirname, 'cni'),
): Promise<number> {
  const { cniBinDir: path, cniBinHostDir: hostPath = path } = config;
  try {
    const isNew = await installPlugin({ from: plugins, directory: { path, hostPath }, arch: process.arch });
    log.info({ directory: hostPath }, isNew ? 'CNI plugin installed' : 'CNI plugin is already installed');
    return 0;
  } catch (error) {
    if (!(await isPresent(join(path, PLUGIN_NAME)))) {
      log.error({ directory: hostPath }, messageOf(error));
      return 1;
    }
    log.error({ directory: hostPath }, `${messageOf(error)}. The agent starts with the plugin that is present`);
    return 0;
  }
}

async function isPresent(path: string): Promise<boolean> {
  const found = await stat(path).catch(() => undefined);
  return found !== undefined && found.isFile() && (found.mode & 0o111) !== 0;
}
