import { type FSWatcher, watch } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../../kube/clock.js';
import { messageOf } from '../../kube/errors.js';
import type { Logger } from '../../kube/log.js';
import { describeExpiry, endOf, isServable } from './certificate-judgement.js';
import type { CertificateSource, ServingPair } from './certificate-source.js';
import type { AdmissionMetrics } from './metrics.js';
import { Nap } from '../../kube/nap.js';

/** Some file systems tell of no changes. */
const POLL_MS = 30_000;
/** Who replaces a pair writes two files. */
const SETTLE_MS = 100;

export interface CertificateDirectoryOptions {
  directory: string;
  clock: Clock;
  log: Logger;
  metrics: Pick<AdmissionMetrics, 'certificateEnds'>;
}

/** Follows tls.crt and tls.key in a directory that somebody else fills, as cert-manager does through a mounted Secret. */
export class CertificateDirectory implements CertificateSource {
  readonly #options: CertificateDirectoryOptions;
  readonly #stopped = new AbortController();
  readonly #nap: Nap;
  #watcher: FSWatcher | undefined;
  #running: Promise<void> = Promise.resolve();
  #served: ServingPair | undefined;
  #failure: string | undefined = 'the certificate is not loaded yet';

  constructor(options: CertificateDirectoryOptions) {
    this.#options = options;
    this.#nap = new Nap(options.clock);
  }

  start(use: (pair: ServingPair) => void): void {
    this.#running = this.#run(use);
  }

  async stop(): Promise<void> {
    this.#stopped.abort();
    this.#nap.wake();
    await this.#running;
    this.#watcher?.close();
  }

  ready(): string | undefined {
    if (this.#served === undefined) return this.#failure;
    return describeExpiry(this.#served.cert, this.#options.clock.now());
  }

  async #run(use: (pair: ServingPair) => void): Promise<void> {
    const { clock, log, directory } = this.#options;
    while (!this.#stopped.signal.aborted) {
      this.#watch();
      try {
        await this.#load(use);
      } catch (error) {
        this.#failure = messageOf(error);
        log.warn(
          { directory },
          `certificate cannot be loaded, ${this.#served ? 'the old one stays' : 'there is none'}: ${messageOf(error)}`,
        );
      }
      await this.#nap.take(POLL_MS);
      await clock.sleep(SETTLE_MS, this.#stopped.signal);
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
    metrics.certificateEnds('serving', endOf(cert) ?? 0);
    use(this.#served);
    log.info({ directory }, 'certificate loaded');
  }

  /** Of the directory, not of the files: a mounted Secret is replaced as a whole, by a link. */
  #watch(): void {
    if (this.#watcher !== undefined) return;
    try {
      this.#watcher = watch(this.#options.directory, { persistent: false }, () => this.#nap.wake());
      this.#watcher.on('error', () => {
        this.#watcher?.close();
        this.#watcher = undefined;
      });
    } catch {
      // it may not be there yet: polling will find it
    }
  }
}
