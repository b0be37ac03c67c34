import { readFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { dirname } from 'node:path';
import type { KubeObject } from '../api/meta.js';
import type { Clock } from '../kube/clock.js';
import { messageOf } from '../kube/errors.js';
import type { Logger } from '../kube/log.js';
import { SECRETS } from '../kube/resources.js';
import type { ClientConfig } from '../process/config/admission-config.js';
import type { Component, ProcessContext } from '../process/context.js';
import type { TlsVersion } from '../process/config/config.js';
import { parseBindAddress } from '../process/listening.js';
import { CertificateDirectory, type CertificateSource } from '../tls/certificate-source.js';
import { FileWatcher } from '../tls/file-watcher.js';
import { expiryOf, splitPem } from '../tls/pem.js';
import { CertificateStore, type WebhookConfigurationRef } from './certificate-store.js';
import type { AdmissionMetrics } from './metrics.js';
import { AdmissionServer, type AdmissionServerOptions } from './server.js';

interface AdmissionComponentOptions {
  name: string;
  bindAddress: string;
  /** The flag for the address, for error messages. */
  bindFlag: string;
  tlsMinVersion: TlsVersion;
  clients: ClientConfig;
  certificate: Omit<ServingCertificateOptions, 'metrics'>;
  routes: AdmissionServerOptions['routes'];
  metrics: Pick<AdmissionMetrics, 'rejected' | 'certificateExpires'>;
  notice?: Component['notice'];
}

/** A component that serves admission reviews. Any number of replicas may serve at the same time. */
export class AdmissionComponent implements Component {
  readonly name: string;
  readonly #context: ProcessContext;
  readonly #server: AdmissionServer;
  readonly #certificates: CertificateSource;
  readonly #clientCa: ClientCa | undefined;
  readonly notice: () => string | undefined;

  /**
   * @param context its log is used without changes
   * @throws {Error} if the bind address is `0`
   */
  constructor(context: ProcessContext, options: AdmissionComponentOptions) {
    const { bindAddress, bindFlag, certificate, metrics } = options;
    const { clientCaFile, clientAllowedNames } = options.clients;
    const { log, clock } = context;
    this.name = options.name;
    this.notice = () => options.notice?.();
    this.#context = context;
    const address = parseBindAddress(bindAddress);
    if (address === undefined)
      throw new Error(`--${bindFlag} is 0, but the webhook must listen on an address: set host:port`);
    this.#server = new AdmissionServer({
      address,
      minVersion: options.tlsMinVersion,
      ...(clientCaFile !== undefined && { clients: { allowedNames: clientAllowedNames } }),
      routes: options.routes,
      log,
      onRejected: metrics.rejected,
      clock,
    });
    this.#clientCa = clientCaFile === undefined ? undefined : new ClientCa({ file: clientCaFile, clock, log });
    this.#certificates = createCertificateSource(context, { ...certificate, metrics });
  }

  /** The port of the server, after the start. */
  get port(): number {
    return this.#server.port;
  }

  async start(): Promise<void> {
    this.#context.informers.start();
    this.#clientCa?.start((authorities) => this.#server.setClientAuthorities(authorities));
    this.#certificates.start((pair) => this.#server.setCertificate(pair));
    await this.#server.listen();
    this.#context.log.info({ port: this.#server.port }, 'admission reviews are served');
  }

  ready(): string | undefined {
    return this.#context.informers.ready() ?? this.#clientCa?.ready() ?? this.#certificates.ready();
  }

  async stop(): Promise<void> {
    await Promise.all([this.#server.stop(), this.#certificates.stop(), this.#clientCa?.stop()]);
  }
}

interface ServingCertificateOptions {
  /** Directory with tls.crt and tls.key that another program renews. Absent: the certificate is created here. */
  directory?: string | undefined;
  /** Namespace of the Service, and of the Secret with the certificate, `<service>-tls`. */
  namespace: string;
  /** The Service whose name the certificate is for. */
  service: string;
  /** URL of the webhook if API servers do not use the Service; its host is in the certificate. */
  url?: string | undefined;
  /** The configuration whose caBundle is kept up to date. */
  configuration: WebhookConfigurationRef;
  /** Other configurations for the same server, whose caBundle is kept up to date if they exist. */
  moreConfigurations?: readonly WebhookConfigurationRef[];
  metrics: Pick<AdmissionMetrics, 'certificateExpires'>;
}

/** Creates the source of an admission server's certificate, and its informers, which the component starts. */
function createCertificateSource(
  context: ProcessContext,
  { directory, metrics, ...options }: ServingCertificateOptions,
): CertificateSource {
  const { client, clock, random, log, informers } = context;
  if (directory !== undefined) return new CertificateDirectory({ directory, clock, log, metrics });
  const { configuration, moreConfigurations = [], namespace } = options;
  const secret = { namespace, name: `${options.service}-tls` };
  const settings = { secret, configuration, moreConfigurations, names: namesOf(options) };
  const store = new CertificateStore({ ...settings, client, clock, random, log, metrics });
  const fieldSelector = `metadata.name=${secret.name}`;
  const secrets = { resource: SECRETS, namespace, fieldSelector, transform: transformToIdentity };
  informers.get(secrets).onChange(() => store.wake());
  for (const { resource, name } of [configuration, ...moreConfigurations]) {
    const watched = { resource, fieldSelector: `metadata.name=${name}`, transform: transformToIdentity };
    informers.get(watched).onChange(() => store.wake());
  }
  return store;
}

/** Keeps only the identity, because the objects are read live. */
function transformToIdentity({ metadata: { name, namespace, resourceVersion = '' } }: KubeObject): KubeObject {
  return { metadata: { name, resourceVersion, ...(namespace === undefined ? {} : { namespace }) } };
}

/** Returns the names that API servers use: the Service's, and the host of the URL if there is one. */
function namesOf({ service, namespace, url }: Omit<ServingCertificateOptions, 'metrics'>): string[] {
  const name = `${service}.${namespace}.svc`;
  const host = url === undefined ? undefined : new URL(url).hostname.replace(/^\[(.*)\]$/, '$1');
  return host === undefined ? [name] : [name, isIP(host) === 0 ? host.toLowerCase() : host];
}

interface ClientCaOptions {
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
