import { readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Clock } from '../kube/clock.js';
import { messageOf } from '../kube/errors.js';
import type { Logger } from '../kube/log.js';
import { expiryOf, splitPem } from '../tls/pem.js';
import { FileWatcher } from '../tls/file-watcher.js';

export interface ClientCaOptions {
  file: string;
  clock: Clock;
  log: Logger;
}

/** Reads a file with the CA certificates that verify clients, and reads it again when it changes. */
export class ClientCa {
  readonly #options: ClientCaOptions;
  #files: FileWatcher | undefined;
  #used: string | undefined;
  #failure: string;

  constructor(options: ClientCaOptions) {
    this.#options = options;
    this.#failure = `${options.file} is not loaded yet`;
  }

  /** @param use called with the certificates as PEM, and again after each change */
  start(use: (authorities: string) => void): void {
    const { file, clock } = this.#options;
    this.#files = new FileWatcher({ directory: dirname(file), clock, load: () => this.#load(use) });
    this.#files.start();
  }

  async stop(): Promise<void> {
    await this.#files?.stop();
  }

  /** @returns undefined if there are certificates to verify clients with, otherwise why not */
  ready(): string | undefined {
    return this.#used === undefined ? this.#failure : undefined;
  }

  async #load(use: (authorities: string) => void): Promise<void> {
    const { file, log } = this.#options;
    try {
      const text = await readFile(file, 'utf8');
      if (text === this.#used) return;
      const certificates = splitPem(text);
      if (certificates.length === 0 || certificates.some((pem) => expiryOf(pem) === undefined)) {
        throw new Error(`${file} must contain CA certificates as PEM, and nothing else`);
      }
      use(text);
      this.#used = text;
      log.info({ file, certificates: certificates.length }, 'CA certificates for clients loaded');
    } catch (error) {
      this.#failure = messageOf(error);
      const state = this.#used === undefined ? 'no clients are answered' : 'the old ones stay in use';
      log.warn({ file }, `CA certificates for clients cannot be loaded, ${state}: ${this.#failure}`);
    }
  }
}
