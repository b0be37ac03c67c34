import { parseBindAddress } from '../process/bind-address.js';
import type { ClientConfig } from '../process/client-config.js';
import type { TlsVersion } from '../process/config.js';
import type { ProcessContext } from '../process/context.js';
import type { Component } from '../process/component.js';
import type { CertificateSource } from '../tls/certificate-source.js';
import { ClientCa } from './client-ca.js';
import type { AdmissionMetrics } from './metrics.js';
import { AdmissionServer, type AdmissionServerOptions } from './server.js';
import { type ServingCertificateOptions, createCertificateSource } from './serving-certificate.js';

export interface AdmissionComponentOptions {
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
export interface AdmissionComponent extends Component {
  /** The port of the server, after the start. */
  readonly port: number;
}

/**
 * @param context its log is used without changes
 * @throws {Error} if the bind address is `0`
 */
export function createAdmissionComponent(
  context: ProcessContext,
  options: AdmissionComponentOptions,
): AdmissionComponent {
  return new AdmissionServerComponent(context, options);
}

class AdmissionServerComponent implements AdmissionComponent {
  readonly name: string;
  readonly #context: ProcessContext;
  readonly #server: AdmissionServer;
  readonly #certificates: CertificateSource;
  readonly #clientCa: ClientCa | undefined;
  readonly notice: () => string | undefined;

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
