import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../kube/clock.js';
import { messageOf } from '../kube/errors.js';
import type { Logger } from '../kube/log.js';
import { describeExpiry, expiryOf, isServable } from './pem.js';
import type { CertificateMetrics, CertificateSource, ServingPair } from './certificate-source.js';
import { FileWatcher } from './file-watcher.js';

export interface CertificateDirectoryOptions {
  directory: string;
  clock: Clock;
  log: Logger;
  metrics: CertificateMetrics;
}

/** Reads tls.crt and tls.key from a directory that another program renews, such as cert-manager with a mounted Secret. */
export class CertificateDirectory implements CertificateSource {
  readonly #options: CertificateDirectoryOptions;
  #files: FileWatcher | undefined;
  #served: ServingPair | undefined;
  #failure: string | undefined = 'the certificate is not loaded yet';

  constructor(options: CertificateDirectoryOptions) {
    this.#options = options;
  }

  start(use: (pair: ServingPair) => void): void {
    const { directory, clock } = this.#options;
    this.#files = new FileWatcher({ directory, clock, load: () => this.#tryLoad(use) });
    this.#files.start();
  }

  async stop(): Promise<void> {
    await this.#files?.stop();
  }

  ready(): string | undefined {
    if (this.#served === undefined) return this.#failure;
    return describeExpiry(this.#served.cert, this.#options.clock.wall());
  }

  async #tryLoad(use: (pair: ServingPair) => void): Promise<void> {
    const { log, directory } = this.#options;
    try {
      await this.#load(use);
    } catch (error) {
      this.#failure = messageOf(error);
      log.warn(
        { directory },
        `certificate cannot be loaded, ${this.#served ? 'the old one stays in use' : 'no requests are answered'}: ${messageOf(error)}`,
      );
    }
  }

  async #load(use: (pair: ServingPair) => void): Promise<void> {
    const { directory, metrics, log } = this.#options;
    const [cert, key] = await Promise.all(
      ['tls.crt', 'tls.key'].map((file) => readFile(join(directory, file), 'utf8')),
    );
    if (cert === undefined || key === undefined) return;
    if (cert === this.#served?.cert && key === this.#served.key) return;
    if (!isServable({ cert, key })) throw new Error(`${join(directory, 'tls.key')} is not the key of tls.crt`);
    this.#served = { cert, key };
    metrics.certificateExpires('serving', expiryOf(cert) ?? 0);
    use(this.#served);
    log.info({ directory }, 'certificate loaded');
  }
}
