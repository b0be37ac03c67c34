import { isConflict, messageOf } from '../kube/errors.js';
import { backoff } from '../kube/retry.js';
import type { Client } from '../kube/client.js';
import { type Clock, type Random, WakeableSleep } from '../kube/clock.js';
import type { Logger } from '../kube/log.js';
import { objectKey } from '../api/meta.js';
import type { Resource } from '../kube/resource.js';
import { TokenBuckets } from '../kube/token-buckets.js';
import { SECRETS, type Secret, type WebhookConfigurationObject } from '../kube/resources.js';
import {
  type CertificateAction,
  type CertificateStep,
  type TlsMaterial,
  planCertificates,
  recoverMaterial,
} from './certificate-plan.js';
import { describeInvalidity, describeLoadError, expiryOf, splitPem } from '../tls/pem.js';
import type { CertificateSource, ServingPair } from '../tls/certificate-source.js';
import type { PemKeyPair } from '../tls/certificates.js';
import type { AdmissionMetrics } from './metrics.js';

/** The certificates are checked at least this often: no watch reports that the clock was set, or that the machine was suspended. */
const MAX_CHECK_INTERVAL_MS = 600_000;
const RETRY_BASE_MS = 250;
const RETRY_MAX_MS = 30_000;
/** Writes of one configuration. Another program that sets its own caBundle, such as the cainjector of cert-manager, answers each of them with a write. */
const TRUST_WRITES = { burst: 5, refillMs: 10_000, maxKeys: 16 };

type DueAction = Exclude<CertificateAction, { action: 'keep' }>;

/** One webhook configuration: mutating or validating, and its name. */
export interface WebhookConfigurationRef {
  resource: Resource<WebhookConfigurationObject>;
  name: string;
}

interface WebhookConfigurationRead {
  resource: Resource<WebhookConfigurationObject>;
  object: WebhookConfigurationObject;
}

interface CertificateStoreOptions {
  client: Pick<Client, 'find' | 'replace' | 'patch'>;
  /** The Secret with the certificates. It must exist, because the right to create Secrets includes the right to read tokens. */
  secret: { namespace: string; name: string };
  /** The configuration whose caBundle is kept up to date. */
  configuration: WebhookConfigurationRef;
  /** Other configurations for the same server, whose caBundle is kept up to date if they exist. */
  moreConfigurations?: readonly WebhookConfigurationRef[];
  /** DNS names and IP addresses that API servers use. */
  names: readonly string[];
  clock: Clock;
  random: Random;
  log: Logger;
  metrics: Pick<AdmissionMetrics, 'certificateExpires'>;
  /** Default: RSA, by the thread pool. */
  generateKeys?: () => Promise<PemKeyPair>;
}

/**
 * Creates and renews the certificates in a Secret that all replicas share. Every change is one PUT with the resourceVersion that was read: of
 * two replicas, one wins and the other uses its result.
 */
export class CertificateStore implements CertificateSource {
  readonly #options: CertificateStoreOptions;
  readonly #stopped = new AbortController();
  readonly #nap: WakeableSleep;
  readonly #trustWrites: TokenBuckets;
  #running: Promise<void> = Promise.resolve();
  #served: ServingPair | undefined;
  #lastStep: CertificateStep | undefined;
  /** The newest CA, and since when the configurations trust it, by the monotonic clock. */
  #newestTrusted: { authority: string; since: number } | undefined;
  /** Set only until the first success: a certificate that is trusted stays ready while the API server is away. */
  #unready: string | undefined = 'the certificate is not loaded yet';

  constructor(options: CertificateStoreOptions) {
    this.#options = options;
    this.#nap = new WakeableSleep(options.clock);
    this.#trustWrites = new TokenBuckets({ clock: options.clock, ...TRUST_WRITES });
  }

  start(use: (pair: ServingPair) => void): void {
    this.#running = this.#run(use);
  }

  async stop(): Promise<void> {
    this.#stopped.abort();
    this.wake();
    await this.#running;
  }

  ready(): string | undefined {
    return this.#unready ?? describeInvalidity(this.#served?.cert ?? '', this.#options.clock.wall());
  }

  /** Checks again now, because the Secret or a configuration has changed. */
  wake(): void {
    this.#nap.wake();
  }

  async #run(use: (pair: ServingPair) => void): Promise<void> {
    const { clock, random, log } = this.#options;
    const retries = backoff({ baseMs: RETRY_BASE_MS, maxMs: RETRY_MAX_MS, random });
    while (!this.#isStopping()) {
      let pauseMs: number;
      try {
        const until = await this.#look(use);
        pauseMs = until === undefined ? 0 : Math.min(MAX_CHECK_INTERVAL_MS, Math.max(0, until - clock.wall()));
        retries.reset();
      } catch (error) {
        if (this.#isStopping()) return;
        if (this.#unready !== undefined) this.#unready = messageOf(error);
        pauseMs = retries.next();
        if (isConflict(error)) log.debug({}, 'another replica changed the certificates first');
        else
          log.warn(
            { err: error, retryAfterMs: pauseMs },
            `certificates cannot be checked or renewed: ${messageOf(error)}`,
          );
      }
      if (pauseMs > 0) await this.#nap.sleep(pauseMs);
    }
  }

  #isStopping(): boolean {
    return this.#stopped.signal.aborted;
  }

  /**
   * Reads everything, and takes one step if one is due.
   * @returns when to check again; undefined: at once
   */
  async #look(use: (pair: ServingPair) => void): Promise<number | undefined> {
    const { client, clock, names } = this.#options;
    // Read before the Secret: a caBundle that is written with this resourceVersion is then never older than the one it replaces.
    const configurations = await this.#readConfigurations();
    const secret = await client.find(SECRETS, this.#options.secret, { signal: this.#stopped.signal });
    if (secret === undefined)
      throw new Error(`Secret ${objectKey({ metadata: this.#options.secret })} does not exist: apply the manifests`);
    const material = readMaterial(secret);
    // a certificate that may be trusted is better than none; a new one must be trusted first
    if (this.#served === undefined && material !== undefined) this.#serve(material, use);
    const trusted = trustedBy(configurations.map(({ object }) => object));
    const now = clock.wall();
    const trustedMs = this.#trustedMs(material?.authorities[0], trusted);
    const due = planCertificates(material, { now, names, trustedMs });
    if (due.action !== 'keep') {
      const recovered = due.action === 'make-all' ? recoverMaterial(this.#served, trusted, now) : undefined;
      if (recovered === undefined) await this.#step(due, secret, material);
      else await this.#step({ ...due, action: 'add-authority' }, secret, recovered);
      return undefined;
    }
    this.#lastStep = undefined;
    if (material !== undefined) {
      for (const configuration of configurations) await this.#trust(configuration, material);
      this.#options.metrics.certificateExpires('authority', expiryOf(material.authorities[0] ?? '') ?? 0);
      this.#serve(material, use);
    }
    this.#unready = undefined;
    return due.until;
  }

  #trustedMs(newest: string | undefined, trusted: readonly string[]): number {
    const now = this.#options.clock.now();
    if (newest === undefined || !trusted.includes(newest)) this.#newestTrusted = undefined;
    else if (this.#newestTrusted?.authority !== newest) this.#newestTrusted = { authority: newest, since: now };
    return now - (this.#newestTrusted?.since ?? now);
  }

  async #step(due: DueAction, secret: Secret, material: TlsMaterial | undefined): Promise<void> {
    const { client, clock, names, log, generateKeys } = this.#options;
    const { action, reason } = due;
    if (action === this.#lastStep) {
      // avoids a tight loop if a step has no effect
      this.#lastStep = undefined;
      throw new Error(`step ${action} had no effect: ${reason}`);
    }
    // creating certificates needs a library that most starts do not need
    const { applyCertificateStep } = await import('./certificate-step.js');
    const made = await applyCertificateStep(action, material, { now: clock.wall(), names, generateKeys });
    await client.replace(SECRETS, writeMaterial(secret, made));
    this.#lastStep = action;
    log.info({ action }, `certificates changed: ${reason}`);
  }

  #serve(material: TlsMaterial, use: (pair: ServingPair) => void): void {
    const { cert, key } = material;
    if (cert === this.#served?.cert && key === this.#served.key) return;
    if (describeLoadError(material) !== undefined) return;
    use({ cert, key });
    this.#served = { cert, key };
    this.#options.metrics.certificateExpires('serving', expiryOf(cert) ?? 0);
  }

  async #readConfigurations(): Promise<WebhookConfigurationRead[]> {
    const { configuration, moreConfigurations = [], client } = this.#options;
    const read: WebhookConfigurationRead[] = [];
    for (const { resource, name } of [configuration, ...moreConfigurations]) {
      const object = await client.find(resource, { name }, { signal: this.#stopped.signal });
      if (object !== undefined) read.push({ resource, object });
      else if (name === configuration.name)
        throw new Error(`${resource.kind} ${name} does not exist: apply the manifests`);
    }
    return read;
  }

  /** Makes API servers trust the CAs in the Secret. */
  async #trust({ resource, object: configuration }: WebhookConfigurationRead, material: TlsMaterial): Promise<void> {
    const wanted = Buffer.from(material.authorities.join('')).toString('base64');
    const operations = (configuration.webhooks ?? []).flatMap(({ clientConfig }, index) =>
      clientConfig.caBundle === wanted
        ? []
        : [{ op: 'add' as const, path: `/webhooks/${index}/clientConfig/caBundle`, value: wanted }],
    );
    if (operations.length === 0) return;
    const { name, resourceVersion = '' } = configuration.metadata;
    if (!this.#trustWrites.tryTake(name))
      throw new Error(
        `another program keeps changing the caBundle of ${resource.kind} ${name}: make it ignore that field, or configure a certificate`,
      );
    // a resourceVersion in a patch is a precondition, like in a PUT
    const precondition = { op: 'replace' as const, path: '/metadata/resourceVersion', value: resourceVersion };
    await this.#options.client.patch(resource, { name }, { type: 'json', operations: [precondition, ...operations] });
    this.#options.log.info({ configuration: name, authorities: material.authorities.length }, 'caBundle set');
  }
}

/** Returns the CAs that all webhooks of the configurations trust, as PEM. */
function trustedBy(configurations: readonly WebhookConfigurationObject[]): string[] {
  const webhooks = configurations.flatMap((configuration) => configuration.webhooks ?? []);
  const [first, ...others] = webhooks.map(({ clientConfig }) => clientConfig.caBundle ?? '');
  if (first === undefined || others.some((other) => other !== first)) return [];
  return splitPem(Buffer.from(first, 'base64').toString());
}

/** Keys of the Secret: those of type kubernetes.io/tls, and the CA's. `ca.crt` contains all trusted CAs, newest first. */
const CERT = 'tls.crt';
const KEY = 'tls.key';
const AUTHORITIES = 'ca.crt';
const AUTHORITY_KEY = 'ca.key';

/** @returns undefined if a key is missing; the content is not checked */
export function readMaterial({ data = {} }: Secret): TlsMaterial | undefined {
  const [cert, key, authorities, authorityKey] = [CERT, KEY, AUTHORITIES, AUTHORITY_KEY].map((name) =>
    Buffer.from(data[name] ?? '', 'base64').toString('utf8'),
  );
  if (!cert || !key || !authorities || !authorityKey) return undefined;
  return { cert, key, authorities: splitPem(authorities), authorityKey };
}

/** Returns the Secret with new material and its other content. */
export function writeMaterial(secret: Secret, material: TlsMaterial): Secret {
  const text = {
    [CERT]: material.cert,
    [KEY]: material.key,
    [AUTHORITIES]: material.authorities.join(''),
    [AUTHORITY_KEY]: material.authorityKey,
  };
  const encoded = Object.entries(text).map(([name, value]) => [name, Buffer.from(value).toString('base64')]);
  return { ...secret, data: { ...secret.data, ...(Object.fromEntries(encoded) as Secret['data']) } };
}
