import { createHash, randomBytes } from 'node:crypto';
import { access, mkdir, open, readFile, readdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../../kube/clock.js';
import { messageOf } from '../../kube/errors.js';
import type { Logger } from '../../kube/log.js';
import { type PluginRequest, readPluginRequest } from './plugin-protocol.js';
import { type InterfaceRef, readCniRequest } from './request.js';

/** A deletion that is still to be made good. */
export interface PendingDelete {
  readonly name: string;
  readonly target: InterfaceRef;
}

export interface PendingDeletesOptions {
  readonly folder: string;
  readonly clock: Clock;
  readonly log: Logger;
}

/** The folder is in memory. The plugin has the same bound: 4096 notes take about 20 MiB. */
export const MAX_PENDING_DELETES = 4096;

const FILE_EXTENSION = '.json';
/** Set aside, for somebody to look at. */
const UNREADABLE_SUFFIX = '.unreadable';
/** Begins the names of notes that are being written. */
const TEMPORARY_PREFIX = '.note-';
/** Whoever was writing one is dead after that. */
const TEMPORARY_MAX_AGE_MS = 10 * 60_000;

/**
 * Deletions that were promised and could not be done: a file each, which outlives the agent. The plugin writes them, too, while no
 * agent answers it; an interface's note has one name, whoever writes it.
 */
export class PendingDeletes {
  readonly #options: PendingDeletesOptions;

  constructor(options: PendingDeletesOptions) {
    this.#options = options;
  }

  /**
   * Writes what a DEL needs, and no more of the request. Durable once it resolves.
   * @returns false if there are too many notes for one more
   * @throws {Error} if it cannot be written
   */
  async write(at: InterfaceRef): Promise<boolean> {
    const { folder } = this.#options;
    await mkdir(folder, { recursive: true, mode: 0o700 });
    if ((await readdir(folder)).length >= MAX_PENDING_DELETES) return this.has(at);
    const scratch = join(folder, `${TEMPORARY_PREFIX}${randomBytes(8).toString('hex')}`);
    try {
      const file = await open(scratch, 'wx', 0o600);
      try {
        await file.writeFile(`${JSON.stringify(deleteRequestFor(at))}\n`);
        await file.sync();
      } finally {
        await file.close();
      }
      await rename(scratch, this.#pathOf(at));
      return true;
    } catch (error) {
      await rm(scratch, { force: true });
      throw error;
    }
  }

  async has(at: InterfaceRef): Promise<boolean> {
    try {
      await access(this.#pathOf(at));
      return true;
    } catch {
      return false;
    }
  }

  /** There may be none. */
  async remove(at: InterfaceRef): Promise<void> {
    await rm(this.#pathOf(at), { force: true });
  }

  /** All that can be read; the others are set aside, with a word in the log. */
  async list(): Promise<PendingDelete[]> {
    const notes: PendingDelete[] = [];
    for (const name of await this.#names()) {
      if (name.startsWith(TEMPORARY_PREFIX)) await this.#removeAbandoned(name);
      if (!name.endsWith(FILE_EXTENSION) || name.startsWith('.')) continue;
      const note = await this.#read(name);
      if (note !== undefined) notes.push(note);
    }
    return notes;
  }

  #pathOf(at: InterfaceRef): string {
    return join(this.#options.folder, pendingDeleteFileName(at));
  }

  async #names(): Promise<string[]> {
    try {
      return (await readdir(this.#options.folder)).sort();
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
      throw error;
    }
  }

  async #read(name: string): Promise<PendingDelete | undefined> {
    const { folder, log } = this.#options;
    const path = join(folder, name);
    try {
      const at = interfaceToDelete(readPluginRequest(await readFile(path, 'utf8')));
      // under another name it would neither be found by who makes it good nor be removed
      if (pendingDeleteFileName(at) !== name) throw new TypeError(`its name should be ${pendingDeleteFileName(at)}`);
      return { name, target: at };
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
      log.error({ path, err: error }, `note of a deletion cannot be read, and is set aside: ${messageOf(error)}`);
      await rename(path, `${path}${UNREADABLE_SUFFIX}`);
      return undefined;
    }
  }

  async #removeAbandoned(name: string): Promise<void> {
    const path = join(this.#options.folder, name);
    try {
      const { mtimeMs } = await stat(path);
      if (this.#options.clock.wall() - mtimeMs > TEMPORARY_MAX_AGE_MS) await rm(path, { force: true });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    }
  }
}

/** As the plugin has it: one name for each interface of a container, whatever characters these have. */
export function pendingDeleteFileName({ containerId, interfaceName }: InterfaceRef): string {
  const isPlain = /^[0-9A-Za-z]+$/.test(containerId) && /^[0-9A-Za-z._-]+$/.test(interfaceName);
  if (isPlain && containerId.length + interfaceName.length <= 160)
    return `${containerId}-${interfaceName}${FILE_EXTENSION}`;
  return createHash('sha256').update(`${containerId}/${interfaceName}`).digest('hex').slice(0, 32) + FILE_EXTENSION;
}

function deleteRequestFor({ containerId, interfaceName }: InterfaceRef): PluginRequest {
  return { env: { CNI_COMMAND: 'DEL', CNI_CONTAINERID: containerId, CNI_IFNAME: interfaceName }, config: '' };
}

function interfaceToDelete(ask: PluginRequest): InterfaceRef {
  // what the config says does not matter any more
  const request = readCniRequest({ ...ask, config: '{}' });
  if (request.command === 'DEL') return request;
  throw new TypeError(`CNI_COMMAND is ${request.command}, not DEL`);
}
