import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf } from '../../../kube/errors.js';
import type { Logger } from '../../../kube/log.js';
import type { InstallConfig } from '../../../process/agent-config.js';
import { PLUGIN_NAME, installPlugin } from './install.js';

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
