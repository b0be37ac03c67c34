import { lstat, readlink, stat } from 'node:fs/promises';
import { dirname, join, relative, resolve } from 'node:path';
import type { Clock } from '../../../kube/clock.js';
import { messageOf } from '../../../kube/errors.js';
import type { Logger } from '../../../kube/log.js';
import type { PluginAlternatives } from '../../../process/config/agent-config.js';
import type { Metrics } from '../../../process/metrics.js';
import { PeriodicTask } from '../../../process/periodic-task.js';
import { docsUrl } from '../../../process/docs-url.js';
import { codeOf } from '../file-errors.js';
import { type InstallOptions, PLUGIN_NAME, type PluginDirectory, describeAccess, installPlugin } from './install.js';

/** A check reads a few directory entries. */
const CHECK_INTERVAL_MS = 10_000;

/** Creates the metrics. Call it once in a process, because metric names are unique. */
export function createPluginFolderMetrics(metrics: Pick<Metrics, 'gauge'>) {
  const usable = metrics.gauge(
    'cni_plugin_usable',
    "1 if the node's directory of CNI plugins has the agent's plugin and the plugins of --cni-required-plugins, otherwise 0.",
  );
  return { setUsable: (isUsable: boolean) => usable.set(isUsable ? 1 : 0) };
}

interface PluginFolderOptions extends InstallOptions {
  /** The plugins that show that the runtime uses this directory. */
  readonly required: readonly PluginAlternatives[];
  readonly clock: Pick<Clock, 'sleep'>;
  readonly log: Logger;
  readonly metrics: ReturnType<typeof createPluginFolderMetrics>;
}

/**
 * Checks that the runtime of the node finds the plugin: that it is in the directory, and that the directory is the one with the other
 * plugins. Replaces the plugin if it can; in the shipped manifests only the init container can.
 */
export class PluginFolder {
  readonly #options: PluginFolderOptions;
  readonly #task: PeriodicTask;
  /** Identifies the installed file whose content was compared last. */
  #compared: string | undefined;
  #problem: string | undefined = 'the directory of CNI plugins has not been checked yet';

  constructor(options: PluginFolderOptions) {
    this.#options = options;
    this.#task = new PeriodicTask({ clock: options.clock, pauseMs: CHECK_INTERVAL_MS, run: () => this.#check() });
  }

  /** Resolves after the first check. */
  async start(): Promise<void> {
    await this.#check();
    this.#task.start();
  }

  async stop(): Promise<void> {
    await this.#task.stop();
  }

  /** @returns why pods may not get addresses although the agent works; undefined if nothing is wrong */
  problem(): string | undefined {
    return this.#problem;
  }

  async #check(): Promise<void> {
    const problems = [await this.#ensureInstalled(), await this.#findMissing()];
    const found = problems.filter((each) => each !== undefined).join('; ');
    const problem = found === '' ? undefined : found;
    if (problem === this.#problem) return;
    this.#problem = problem;
    const { log, metrics, directory } = this.#options;
    metrics.setUsable(problem === undefined);
    const fields = { directory: directory.hostPath };
    if (problem === undefined) log.info(fields, 'the directory of CNI plugins is usable');
    else log.warn(fields, problem);
  }

  async #ensureInstalled(): Promise<string | undefined> {
    const { directory, log } = this.#options;
    const file = join(directory.path, PLUGIN_NAME);
    try {
      const present = await identify(file);
      if (present !== undefined && present === this.#compared) return undefined;
      if (await installPlugin(this.#options)) log.info({ directory: directory.hostPath }, 'CNI plugin installed');
      this.#compared = await identify(file);
      return undefined;
    } catch (error) {
      this.#compared = undefined;
      if (codeOf((error as Error).cause) !== 'EROFS') return messageOf(error);
      return (
        `${join(directory.hostPath, PLUGIN_NAME)} on the node is missing or is not the plugin of this version: delete the agent's pod, ` +
        'so that its init container installs it; if it cannot, its log says why'
      );
    }
  }

  async #findMissing(): Promise<string | undefined> {
    const { directory, required } = this.#options;
    try {
      const missing = await findMissingPlugins(directory, required);
      if (missing.length === 0) return undefined;
      const names = missing.map((group) => `no ${group.join(' or ')}`).join(' and ');
      return (
        `the node's directory ${directory.hostPath} has ${names}, so its container runtime probably looks for CNI plugins in another ` +
        `directory: set that of your distribution (${docsUrl('how-to/install.md#adapt-the-nodes')}), install what is missing, ` +
        'or change --cni-required-plugins'
      );
    } catch (error) {
      return `cannot read the node's directory ${directory.hostPath}: ${messageOf(error)}. ${await describeAccess(directory.path)}`;
    }
  }
}

/** Returns a text that changes if the file is replaced or written; undefined if there is no file. */
async function identify(path: string): Promise<string | undefined> {
  try {
    const { ino, size, mode, mtimeNs, ctimeNs } = await stat(path, { bigint: true });
    return [ino, size, mode, mtimeNs, ctimeNs].join('.');
  } catch {
    return undefined;
  }
}

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
