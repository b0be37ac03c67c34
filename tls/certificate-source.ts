import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../kube/clock.js';
import { messageOf } from '../kube/errors.js';
import type { Logger } from '../kube/log.js';
import { FileWatcher } from './file-watcher.js';
import { describeInvalidity, describeLoadError, expiryOf } from './pem.js';

/** The certificate and key of a TLS server, as PEM. */
export interface ServingPair {
  cert: string;
  key: string;
}

export interface CertificateMetrics {
  /** When a certificate in use expires, in ms since the epoch. */
  certificateExpires: (which: 'authority' | 'serving', at: number) => void;
}

/** Where the serving certificate comes from. */
export interface CertificateSource {
  /**
   * Starts to watch or renew the certificate. Does not wait for it.
   * @param use called with the first certificate and with each new one
   */
  start(use: (pair: ServingPair) => void): void;
  stop(): Promise<void>;
  /** @returns undefined if a valid certificate that clients trust is in use, otherwise why not */
  ready(): string | undefined;
}

interface CertificateDirectoryOptions {
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
    return describeInvalidity(this.#served.cert, this.#options.clock.wall());
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
    const problem = describeLoadError({ cert, key });
    if (problem !== undefined)
      throw new Error(`${join(directory, 'tls.key')} is not the key of tls.crt, or one of them is damaged: ${problem}`);
    use({ cert, key });
    this.#served = { cert, key };
    metrics.certificateExpires('serving', expiryOf(cert) ?? 0);
    log.info({ directory }, 'certificate loaded');
  }
}

const DAY_MS = 24 * 3_600_000;
const LIFETIME_MS = 90 * DAY_MS;
/** Two thirds of the lifetime. */
const RENEW_AFTER_MS = 60 * DAY_MS;
/** Clocks differ. */
const BACKDATE_MS = 5 * 60_000;
/** Shorter than a timer can be, and soon after the clock was set. */
const CHECK_MS = 3_600_000;
const RETRY_MS = 60_000;
const SERIAL_BYTES = 16;

interface SelfSignedCertificateOptions {
  /** DNS names and IP addresses. */
  readonly names: readonly string[];
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: CertificateMetrics;
}

/** A certificate that exists only in memory and that nobody signed: it encrypts, but clients cannot verify who answers. */
export class SelfSignedCertificate implements CertificateSource {
  readonly #options: SelfSignedCertificateOptions;
  readonly #stopped = new AbortController();
  #running: Promise<void> = Promise.resolve();
  #cert: string | undefined;
  #failure = 'the certificate is not created yet';
  #madeAt = 0;

  constructor(options: SelfSignedCertificateOptions) {
    this.#options = options;
  }

  start(use: (pair: ServingPair) => void): void {
    this.#running = this.#run(use);
  }

  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#running;
  }

  ready(): string | undefined {
    if (this.#cert === undefined) return this.#failure;
    return describeInvalidity(this.#cert, this.#options.clock.wall());
  }

  async #run(use: (pair: ServingPair) => void): Promise<void> {
    const { clock } = this.#options;
    const { signal } = this.#stopped;
    while (!signal.aborted) {
      const isRenewed = this.#isDue() ? await this.#renew(use) : true;
      await clock.sleep(isRenewed ? CHECK_MS : RETRY_MS, signal);
    }
  }

  /** Also if the clock was set back to before its creation, because clients would say that it is not valid yet. */
  #isDue(): boolean {
    const age = this.#options.clock.wall() - this.#madeAt;
    return this.#cert === undefined || age >= RENEW_AFTER_MS || age < -BACKDATE_MS;
  }

  async #renew(use: (pair: ServingPair) => void): Promise<boolean> {
    const { names, clock, log, metrics } = this.#options;
    try {
      // loaded now, because only self-signed certificates need it in some processes
      const { generateKeys, makeServingCertificate } = await import('./certificates.js');
      const keys = await generateKeys();
      const now = clock.wall();
      const serial = randomBytes(SERIAL_BYTES).toString('hex');
      const validity = { notBefore: now - BACKDATE_MS, notAfter: now + LIFETIME_MS };
      const cert = makeServingCertificate({ keys, ...validity, serial }, undefined, names);
      use({ cert, key: keys.privateKey });
      this.#cert = cert;
      this.#madeAt = now;
      metrics.certificateExpires('serving', validity.notAfter);
      log.info({ expires: new Date(validity.notAfter).toISOString() }, 'self-signed certificate created');
      return true;
    } catch (error) {
      this.#failure = `the certificate cannot be created: ${messageOf(error)}`;
      log.error({ err: error }, this.#failure);
      return false;
    }
  }
}
