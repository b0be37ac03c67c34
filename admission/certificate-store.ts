import { isConflict, messageOf } from '../kube/errors.js';
import { backoff } from '../kube/backoff.js';
import type { Client } from '../kube/client.js';
import type { Clock, Random } from '../kube/clock.js';
import type { Logger } from '../kube/log.js';
import { objectKey } from '../api/meta.js';
import type { Resource } from '../kube/resource.js';
import { SECRETS, type Secret, type WebhookConfigurationObject } from '../kube/resources.js';
import {
  type CertificateAction,
  type TlsMaterial,
  describeExpiry,
  expiryOf,
  isServable,
  planCertificates,
} from './certificate-plan.js';
import type { CertificateStep } from './certificate-step.js';
import type { CertificateSource, ServingPair } from './certificate-source.js';
import type { PemKeyPair } from './certificates.js';
import type { AdmissionMetrics } from './metrics.js';
import { WakeableSleep } from '../kube/wakeable-sleep.js';
import { readMaterial, writeMaterial } from './tls-secret.js';

/** What is due is looked for at least this often, whatever nobody told us. */
const MAX_CHECK_INTERVAL_MS = 12 * 3_600_000;
const RETRY_BASE_MS = 250;
const RETRY_MAX_MS = 30_000;

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

export interface CertificateStoreOptions {
  client: Pick<Client, 'find' | 'replace' | 'patch'>;
  /** Where the certificates are kept. It must exist: the right to create Secrets would be the right to read tokens. */
  secret: { namespace: string; name: string };
  /** Whose caBundle is kept true. */
  configuration: WebhookConfigurationRef;
  /** Others that lead to the same server: theirs, too, where they are there. */
  moreConfigurations?: readonly WebhookConfigurationRef[];
  /** DNS names and IP addresses under which API servers call. */
  names: readonly string[];
  clock: Clock;
  random: Random;
  log: Logger;
  metrics: Pick<AdmissionMetrics, 'certificateEnds'>;
  /** Default: RSA, by the thread pool. */
  generateKeys?: () => Promise<PemKeyPair>;
}

/**
 * Makes and renews the certificates and keeps them in a Secret, which all replicas share. Every change is one PUT with the resourceVersion that was
 * read: of two replicas that want the same, one wins and the other takes what it made. Nothing is remembered between two looks.
 */
export class CertificateStore implements CertificateSource {
  readonly #options: CertificateStoreOptions;
  readonly #stopped = new AbortController();
  readonly #nap: WakeableSleep;
  #running: Promise<void> = Promise.resolve();
  #served: ServingPair | undefined;
  #lastStep: CertificateStep | undefined;
  /** Only before all was well for the first time: a certificate that is trusted stays so while the API server is away. */
  #unready: string | undefined = 'the certificate is not loaded yet';

  constructor(options: CertificateStoreOptions) {
    this.#options = options;
    this.#nap = new WakeableSleep(options.clock);
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
    return this.#unready ?? describeExpiry(this.#served?.cert ?? '', this.#options.clock.wall());
  }

  /** Looks again now: the Secret or the configuration has changed. */
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
        if (isConflict(error)) log.debug({}, 'another replica was faster');
        else log.warn({ err: error, retryAfterMs: pauseMs }, `certificates cannot be kept: ${messageOf(error)}`);
      }
      if (pauseMs > 0) await this.#nap.sleep(pauseMs);
    }
  }

  #isStopping(): boolean {
    return this.#stopped.signal.aborted;
  }

  /**
   * One look at everything, and one step where one is due.
   * @returns when to look again; undefined: at once
   */
  async #look(use: (pair: ServingPair) => void): Promise<number | undefined> {
    const { client, clock, names } = this.#options;
    // Before the Secret: a bundle that is written with this resourceVersion is then no older than the one that it replaces.
    const configurations = await this.#readConfigurations();
    const secret = await client.find(SECRETS, this.#options.secret, { signal: this.#stopped.signal });
    if (secret === undefined)
      throw new Error(`Secret ${objectKey({ metadata: this.#options.secret })} does not exist: apply the manifests`);
    const material = readMaterial(secret);
    // something that may be trusted is better than nothing; a replacement has to be trusted first
    if (this.#served === undefined && material !== undefined) this.#serve(material, use);
    const judgement = planCertificates(material, {
      now: clock.wall(),
      names,
      trusted: trustedBy(configurations.map(({ object }) => object)),
    });
    if (judgement.action !== 'keep') {
      await this.#step(judgement, secret, material);
      return undefined;
    }
    this.#lastStep = undefined;
    if (material !== undefined) {
      for (const configuration of configurations) await this.#trust(configuration, material);
      this.#options.metrics.certificateEnds('authority', expiryOf(material.authorities[0] ?? '') ?? 0);
      this.#serve(material, use);
    }
    this.#unready = undefined;
    return judgement.until;
  }

  async #step(due: DueAction, secret: Secret, material: TlsMaterial | undefined): Promise<void> {
    const { client, clock, names, log, generateKeys } = this.#options;
    const { action, reason } = due;
    if (action === this.#lastStep) {
      // whatever keeps it from helping: not in a tight loop
      this.#lastStep = undefined;
      throw new Error(`${action} did not help: ${reason}`);
    }
    // making certificates needs a library that most starts can do without
    const { applyCertificateStep } = await import('./certificate-step.js');
    const made = await applyCertificateStep(action, material, { now: clock.wall(), names, generateKeys });
    await client.replace(SECRETS, writeMaterial(secret, made));
    this.#lastStep = action;
    log.info({ action }, `certificates changed: ${reason}`);
  }

  #serve(material: TlsMaterial, use: (pair: ServingPair) => void): void {
    const { cert, key } = material;
    if (cert === this.#served?.cert && key === this.#served.key) return;
    if (!isServable(material)) return;
    this.#options.metrics.certificateEnds('serving', expiryOf(cert) ?? 0);
    this.#served = { cert, key };
    use(this.#served);
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

  /** Makes API servers trust what the Secret holds. */
  async #trust({ resource, object: configuration }: WebhookConfigurationRead, material: TlsMaterial): Promise<void> {
    const wanted = Buffer.from(material.authorities.join('')).toString('base64');
    const operations = (configuration.webhooks ?? []).flatMap(({ clientConfig }, index) =>
      clientConfig.caBundle === wanted
        ? []
        : [{ op: 'add' as const, path: `/webhooks/${index}/clientConfig/caBundle`, value: wanted }],
    );
    if (operations.length === 0) return;
    const { name, resourceVersion = '' } = configuration.metadata;
    // a resourceVersion in a patch is a precondition, as in a PUT
    const precondition = { op: 'replace' as const, path: '/metadata/resourceVersion', value: resourceVersion };
    await this.#options.client.patch(resource, { name }, { type: 'json', operations: [precondition, ...operations] });
    this.#options.log.info({ configuration: name, authorities: material.authorities.length }, 'caBundle set');
  }
}

/** The CAs that every webhook of the configurations trusts, as PEM. */
function trustedBy(configurations: readonly WebhookConfigurationObject[]): string {
  const webhooks = configurations.flatMap((configuration) => configuration.webhooks ?? []);
  const [first, ...others] = webhooks.map(({ clientConfig }) => clientConfig.caBundle ?? '');
  return first !== undefined && others.every((other) => other === first) ? Buffer.from(first, 'base64').toString() : '';
}
