import { mkdirSync, symlinkSync } from 'node:fs';
import { lstat, readdir, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { Clock } from '../../kube/clock.js';
import { messageOf } from '../../kube/errors.js';
import type { Logger } from '../../kube/log.js';
import { codeOf, ifAbsent } from './file-errors.js';
import type { AddRequest } from './request.js';

/** Where containerd and CRI-O mount the network namespaces of sandboxes. The agent sees the folder at the same path. */
export const NAMESPACES_FOLDER = '/var/run/netns';

/** How long a sandbox is known after its first ADD, if it has ended. A late write of that ADD is found minutes later, by a later process. */
const ENDED_KNOWN_MS = 15 * 60_000;

/** By container ID. One in neither set may exist. */
export interface KnownSandboxes {
  readonly existing: ReadonlySet<string>;
  readonly ended: ReadonlySet<string>;
}

interface SandboxesOptions {
  readonly folder: string;
  /** Default: {@link NAMESPACES_FOLDER}. */
  readonly namespaces?: string;
  readonly clock: Pick<Clock, 'wall'>;
  readonly log: Logger;
}

/**
 * The sandboxes of the node. For each, a link with the container ID as name leads to its network namespace, whose file the runtime removes after the last DEL.
 * The links survive a restart of the agent. A reboot removes them and the namespaces, because `/run` is in memory.
 */
export class Sandboxes {
  readonly #options: SandboxesOptions;

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

  /** Tells which of the recorded sandboxes exist. Those that ended are forgotten in time. */
  async known(): Promise<KnownSandboxes> {
    const { folder, clock } = this.#options;
    const [existing, ended] = [new Set<string>(), new Set<string>()];
    for (const containerId of await readdir(folder).catch(ifAbsent([]))) {
      const link = join(folder, containerId);
      if ((await stat(link).catch(ifAbsent(undefined))) !== undefined) existing.add(containerId);
      else {
        ended.add(containerId);
        const { mtimeMs } = await lstat(link);
        if (clock.wall() - mtimeMs > ENDED_KNOWN_MS) await rm(link, { force: true });
      }
    }
    return { existing, ended };
  }
}
