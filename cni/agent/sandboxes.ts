import { mkdirSync, symlinkSync } from 'node:fs';
import { readdir, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { messageOf } from '../../kube/errors.js';
import type { Logger } from '../../kube/log.js';
import { codeOf, ifAbsent } from './file-errors.js';
import type { AddRequest } from './request.js';

/** Where containerd and CRI-O mount the network namespaces of sandboxes. The agent sees the folder at the same path. */
export const NAMESPACES_FOLDER = '/var/run/netns';

/** Of ended sandboxes that are remembered. A late write is found minutes after its sandbox has ended. */
const MAX_ENDED = 4096;

interface SandboxesOptions {
  readonly folder: string;
  /** Default: {@link NAMESPACES_FOLDER}. */
  readonly namespaces?: string;
  readonly log: Logger;
}

/**
 * The sandboxes of the node. For each, a link with the container ID as name leads to its network namespace, whose file the runtime removes after the last DEL.
 * The links survive a restart of the agent. A reboot removes them and the namespaces, because `/run` is in memory.
 */
export class Sandboxes {
  readonly #options: SandboxesOptions;
  /** Container IDs, the latest last. */
  readonly #ended = new Set<string>();

  constructor(options: SandboxesOptions) {
    this.#options = options;
  }

  /** Records the sandbox of an ADD, at once, as the folder is in memory. If that is impossible, it is not known whether the sandbox exists. */
  add({ containerId, netns }: Pick<AddRequest, 'containerId' | 'netns'>): void {
    const { folder, namespaces = NAMESPACES_FOLDER, log } = this.#options;
    // the agent does not see other folders, and in /proc other processes than the runtime; /var/run and /run are the same
    if (![namespaces, NAMESPACES_FOLDER, '/run/netns'].includes(dirname(netns))) return;
    try {
      mkdirSync(folder, { recursive: true, mode: 0o700 });
      symlinkSync(join(namespaces, basename(netns)), join(folder, containerId));
    } catch (error) {
      if (codeOf(error) === 'EEXIST') return; // another interface of the sandbox
      log.warn({ containerId, err: error }, `cannot record the network namespace of a sandbox: ${messageOf(error)}`);
    }
  }

  /** Returns the container IDs of the sandboxes that exist, and forgets the others. */
  async existing(): Promise<ReadonlySet<string>> {
    const { folder } = this.#options;
    const found = new Set<string>();
    for (const containerId of await readdir(folder).catch(ifAbsent([]))) {
      const link = join(folder, containerId);
      if ((await stat(link).catch(ifAbsent(undefined))) !== undefined) found.add(containerId);
      else {
        this.#addEnded(containerId);
        await rm(link, { force: true });
      }
    }
    return found;
  }

  /** Whether this process has seen that a recorded sandbox does not exist any more. One without a record may exist. */
  hasEnded(containerId: string): boolean {
    return this.#ended.has(containerId);
  }

  #addEnded(containerId: string): void {
    const [oldest] = this.#ended;
    if (this.#ended.size >= MAX_ENDED && oldest !== undefined) this.#ended.delete(oldest);
    this.#ended.add(containerId);
  }
}
