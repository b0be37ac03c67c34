import { createHash, randomBytes } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, readFile, readdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { type Clock, type Random, WakeableSleep } from '../../kube/clock.js';
import { TransportError, messageOf } from '../../kube/errors.js';
import type { Logger } from '../../kube/log.js';
import { backoff } from '../../kube/retry.js';
import { writeAtomically } from './atomic-write.js';
import { codeOf, ifAbsent } from './file-errors.js';
import type { AgentMetrics } from './metrics.js';
import { type InterfaceRef, type PluginRequest, readCniRequest, readPluginRequest } from './request.js';

/** A DEL that could not be carried out yet. */
export interface PendingDelete {
  readonly name: string;
  readonly target: InterfaceRef;
}

interface PendingDeletesOptions {
  readonly folder: string;
  readonly clock: Clock;
  readonly log: Logger;
}

/** The folder is in memory: 4096 files take about 20 MiB. The plugin has the same limit. */
export const MAX_PENDING_DELETES = 4096;

const FILE_EXTENSION = '.json';
/** Marks files that are invalid and are kept for inspection. */
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

  /** At once: the folder is in memory, and a call in another thread takes far longer. */
  has(target: InterfaceRef): boolean {
    return existsSync(this.#pathOf(target));
  }

  /** Does nothing if there is none. */
  async remove(target: InterfaceRef): Promise<void> {
    if (this.has(target)) await rm(this.#pathOf(target), { force: true });
  }

  /** Lists the pending deletes. Invalid files are renamed and logged. One that cannot be renamed does not stop the others. */
  async list(): Promise<PendingDelete[]> {
    const { folder, log } = this.#options;
    const notes: PendingDelete[] = [];
    for (const name of await this.#names()) {
      try {
        if (name.startsWith(TEMPORARY_PREFIX)) await this.#removeAbandoned(name);
        const isNote = name.endsWith(FILE_EXTENSION) && !name.startsWith('.');
        const note = isNote ? await this.#read(name) : undefined;
        if (note !== undefined) notes.push(note);
      } catch (error) {
        log.error({ path: join(folder, name), err: error }, `remove this file by hand: ${messageOf(error)}`);
      }
    }
    return notes;
  }

  #pathOf(target: InterfaceRef): string {
    return join(this.#options.folder, pendingDeleteFileName(target));
  }

  async #names(): Promise<string[]> {
    return (await readdir(this.#options.folder).catch(ifAbsent([]))).sort();
  }

  async #read(name: string): Promise<PendingDelete | undefined> {
    const { folder, log } = this.#options;
    const path = join(folder, name);
    let text: string;
    try {
      text = await readFile(path, 'utf8');
    } catch (error) {
      // it may be readable later: the node may have no file descriptor left
      if (codeOf(error) !== 'ENOENT')
        log.error({ path, err: error }, `cannot read the file of a pending delete, trying again: ${messageOf(error)}`);
      return undefined;
    }
    try {
      const target = interfaceToDelete(readPluginRequest(text));
      // under another name the file would neither be found nor removed
      const expected = pendingDeleteFileName(target);
      if (expected !== name) throw new TypeError(`its name should be ${expected}`);
      return { name, target };
    } catch (error) {
      log.error(
        { path, err: error },
        `the file of a pending delete is invalid, renaming it to ${name}${UNREADABLE_SUFFIX}: ${messageOf(error)}`,
      );
      await rename(path, `${path}${UNREADABLE_SUFFIX}`);
      return undefined;
    }
  }

  async #removeAbandoned(name: string): Promise<void> {
    const path = join(this.#options.folder, name);
    const found = await stat(path).catch(ifAbsent(undefined));
    if (found !== undefined && this.#options.clock.wall() - found.mtimeMs > TEMPORARY_MAX_AGE_MS)
      await rm(path, { force: true });
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

interface PendingDeleteRetryOptions {
  readonly pendingDeletes: Pick<PendingDeletes, 'list'>;
  /** Carries out a pending delete and removes its file. */
  readonly retryDelete: (note: PendingDelete, signal: AbortSignal) => Promise<void>;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly metrics: Pick<AgentMetrics, 'pending'>;
}

const BASE_MS = 1_000;
const MAX_MS = 60_000;
/** The plugin also writes pending deletes, without a notification. */
const RESCAN_MS = 30_000;

/** Retries pending deletes: at the start, soon after each new one, and with back-off while the API server is not available. */
export class PendingDeleteRetry {
  readonly #options: PendingDeleteRetryOptions;
  readonly #stop = new AbortController();
  readonly #sleep: WakeableSleep;
  #running: Promise<void> | undefined;

  constructor(options: PendingDeleteRetryOptions) {
    this.#options = options;
    this.#sleep = new WakeableSleep(options.clock);
    setMaxListeners(0, this.#stop.signal);
  }

  start(): void {
    this.#running ??= this.#run();
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    this.#sleep.wake();
    await this.#running;
  }

  /** Announces a new pending delete. A back-off after a failure still ends first. */
  wake(): void {
    this.#sleep.wake();
  }

  async #run(): Promise<void> {
    const { clock, random } = this.#options;
    const pause = backoff({ baseMs: BASE_MS, maxMs: MAX_MS, random });
    while (!this.#stop.signal.aborted) {
      if (await this.#retryAll()) {
        pause.reset();
        await this.#sleep.sleep(RESCAN_MS);
      }
      // an immediate retry would most likely fail again
      await clock.sleep(pause.next(), this.#stop.signal);
    }
  }

  /** @returns whether no pending delete is left */
  async #retryAll(): Promise<boolean> {
    const { pendingDeletes, log, metrics } = this.#options;
    let pending: PendingDelete[];
    try {
      pending = await pendingDeletes.list();
    } catch (error) {
      log.error({ err: error }, `cannot list the pending deletes: ${messageOf(error)}`);
      return false;
    }
    let left = pending.length;
    metrics.pending(left);
    for (const note of pending) {
      const outcome = await this.#retryOne(note);
      if (outcome === 'away') break; // the others would fail, too
      if (outcome === 'done') metrics.pending(--left);
    }
    return left === 0;
  }

  async #retryOne(note: PendingDelete): Promise<'done' | 'failed' | 'away'> {
    const { retryDelete, log } = this.#options;
    try {
      await retryDelete(note, this.#stop.signal);
      log.info({ ...note.target }, 'pending delete carried out');
      return 'done';
    } catch (error) {
      if (this.#stop.signal.aborted) return 'away';
      log.warn({ ...note.target, err: error }, `a pending delete failed and is retried: ${messageOf(error)}`);
      return error instanceof TransportError ? 'away' : 'failed';
    }
  }
}
