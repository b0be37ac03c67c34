import { createHash, randomBytes } from 'node:crypto';
import { access, mkdir, readFile, readdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../../kube/clock.js';
import { messageOf } from '../../kube/errors.js';
import type { Logger } from '../../kube/log.js';
import { writeAtomically } from './atomic-write.js';
import { type InterfaceRef, type PluginRequest, readCniRequest, readPluginRequest } from './request.js';

/** A DEL that could not be carried out yet. */
export interface PendingDelete {
  readonly name: string;
  readonly target: InterfaceRef;
}

export interface PendingDeletesOptions {
  readonly folder: string;
  readonly clock: Clock;
  readonly log: Logger;
}

/** The folder is in memory: 4096 files take about 20 MiB. The plugin has the same limit. */
export const MAX_PENDING_DELETES = 4096;

const FILE_EXTENSION = '.json';
/** Marks files that could not be read and are kept for inspection. */
const UNREADABLE_SUFFIX = '.unreadable';
/** Prefix of files that are being written. */
const TEMPORARY_PREFIX = '.note-';
/** After this time the writer of a temporary file has crashed. */
const TEMPORARY_MAX_AGE_MS = 10 * 60_000;

/**
 * DELs that were acknowledged and could not be carried out: one file each, which survives a restart of the agent. The plugin writes
 * them, too, while no agent answers. Both use the same file name for an interface.
 */
export class PendingDeletes {
  readonly #options: PendingDeletesOptions;

  constructor(options: PendingDeletesOptions) {
    this.#options = options;
  }

  /**
   * Stores only the part of the request that a DEL needs. It is durable once the promise resolves.
   * @returns false if there are too many pending deletes
   * @throws {Error} if it cannot be written
   */
  async write(target: InterfaceRef): Promise<boolean> {
    const { folder } = this.#options;
    await mkdir(folder, { recursive: true, mode: 0o700 });
    if ((await readdir(folder)).length >= MAX_PENDING_DELETES) return this.has(target);
    const temporary = join(folder, `${TEMPORARY_PREFIX}${randomBytes(8).toString('hex')}`);
    const text = `${JSON.stringify(deleteRequestFor(target))}\n`;
    try {
      await writeAtomically(this.#pathOf(target), text, { temporary, mode: 0o600 });
    } catch (error) {
      // the error of a full disk names no path
      throw new Error(`cannot write ${this.#pathOf(target)}: ${messageOf(error)}`, { cause: error });
    }
    return true;
  }

  async has(target: InterfaceRef): Promise<boolean> {
    try {
      await access(this.#pathOf(target));
      return true;
    } catch {
      return false;
    }
  }

  /** Does nothing if there is none. */
  async remove(target: InterfaceRef): Promise<void> {
    await rm(this.#pathOf(target), { force: true });
  }

  /** Lists the pending deletes. Files that cannot be read are renamed and logged. */
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

  #pathOf(target: InterfaceRef): string {
    return join(this.#options.folder, pendingDeleteFileName(target));
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
      const target = interfaceToDelete(readPluginRequest(await readFile(path, 'utf8')));
      // under another name the file would neither be found nor removed
      const expected = pendingDeleteFileName(target);
      if (expected !== name) throw new TypeError(`its name should be ${expected}`);
      return { name, target };
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
      log.error(
        { path, err: error },
        `cannot read the file of a pending delete, renaming it to ${name}${UNREADABLE_SUFFIX}: ${messageOf(error)}`,
      );
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

/** Returns the file name for an interface of a container; the plugin has the same function. Other characters are hashed. */
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
  // a DEL does not use the config
  const request = readCniRequest({ ...ask, config: '{}' });
  if (request.command === 'DEL') return request;
  throw new TypeError(`CNI_COMMAND is ${request.command}, not DEL`);
}
