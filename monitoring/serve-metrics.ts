import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Server, createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { hostname } from 'node:os';
import type { Registry } from 'prom-client';
import { messageOf } from '../kube/errors.js';
import type { Logger } from '../kube/log.js';
import type { TlsVersion } from '../process/config/config.js';
import type { ProcessContext } from '../process/context.js';
import { type BindAddress, ConnectionLimit, closeServer, listenOn, parseBindAddress } from '../process/listening.js';
import type { MetricsConfig } from '../process/config/metrics-config.js';
import type { Metrics } from '../process/metrics.js';
import type { ReadinessCheck } from '../process/probes.js';
import {
  CertificateDirectory,
  type CertificateMetrics,
  type CertificateSource,
  SelfSignedCertificate,
  type ServingPair,
} from '../tls/certificate-source.js';
import { ScraperAccess } from './scraper-access.js';

export interface SecureMetrics {
  /** Undefined if metrics are disabled. */
  readonly port: number | undefined;
  /** Never fails: a process works without metrics. Its notice says if there is no certificate. */
  readonly check: ReadinessCheck;
  close(): Promise<void>;
}

/**
 * Serves metrics over HTTPS to clients that the API server allows.
 * @throws {Error} if it cannot listen on the address; names the address
 */
export async function serveSecureMetrics(
  context: Pick<ProcessContext, 'client' | 'clock' | 'log' | 'metrics'>,
  config: MetricsConfig & { readonly tlsMinVersion: TlsVersion },
): Promise<SecureMetrics> {
  const { client, clock } = context;
  const log = context.log.child({ part: 'metrics' });
  const address = parseBindAddress(config.metricsBindAddress);
  const check = { name: 'metrics', run: () => undefined };
  if (address === undefined) return { port: undefined, check, close: () => Promise.resolve() };
  const metrics = createMonitoringMetrics(context.metrics);
  const access = new ScraperAccess({ client, clock, log, audiences: config.metricsAudiences });
  const { registry } = context.metrics;
  const server = new MetricsServer({ address, minVersion: config.tlsMinVersion, access, registry, metrics, log });
  const { metricsCertDir: directory } = config;
  const certificates: CertificateSource =
    directory === undefined
      ? new SelfSignedCertificate({ names: ['localhost', '127.0.0.1', hostname()], clock, log, metrics })
      : new CertificateDirectory({ directory, clock, log, metrics });
  await server.listen();
  certificates.start((pair) => server.setCertificate(pair));
  log.info({ metricsPort: server.port }, 'metrics are served over HTTPS');
  return {
    port: server.port,
    check: { ...check, notice: () => certificates.ready() },
    close: async () => {
      await Promise.all([server.close(), certificates.stop()]);
    },
  };
}

const PATH = '/metrics';
/** A few scrapers connect. */
const MAX_CONNECTIONS = 64;
/** Limit for a handshake and for the head of a request. */
const REQUEST_MS = 5_000;
/** Scrapers keep their connection from one scrape to the next. */
const KEEP_ALIVE_MS = 120_000;
/** A client that does not read its response is disconnected. */
const SILENT_MS = 30_000;
const MAX_HEADER_BYTES = 16 * 1024;
const MAX_HEADERS = 64;
/** Clients may retry after this time. */
const RETRY_AFTER_S = '5';

interface MetricsServerOptions {
  readonly address: BindAddress;
  readonly minVersion: TlsVersion;
  readonly access: Pick<ScraperAccess, 'decide'>;
  readonly registry: Registry;
  readonly metrics: Pick<MonitoringMetrics, 'answered'>;
  readonly log: Logger;
}

/** Serves `/metrics` over HTTPS to the clients that may read it. */
class MetricsServer {
  readonly #options: MetricsServerOptions;
  readonly #server: Server;
  readonly #connections: ConnectionLimit;

  constructor(options: MetricsServerOptions) {
    const { minVersion, log } = options;
    this.#options = options;
    const settings = {
      minVersion,
      handshakeTimeout: REQUEST_MS,
      headersTimeout: REQUEST_MS,
      requestTimeout: REQUEST_MS,
      connectionsCheckingInterval: 1_000,
      keepAliveTimeout: KEEP_ALIVE_MS,
      maxHeaderSize: MAX_HEADER_BYTES,
    };
    this.#server = createServer(settings, (request, response) => void this.#serve(request, response));
    this.#server.maxHeadersCount = MAX_HEADERS;
    this.#server.timeout = SILENT_MS;
    this.#connections = new ConnectionLimit(this.#server, MAX_CONNECTIONS);
    this.#server.on('tlsClientError', (error) => log.debug({ err: error }, 'TLS handshake failed'));
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /**
   * Starts to listen. Handshakes fail until there is a certificate.
   * @throws {Error} if the server cannot listen on the address; names it
   */
  listen(): Promise<void> {
    return listenOn(this.#server, this.#options.address);
  }

  /** Sets the certificate for new connections. Open connections stay. */
  setCertificate({ cert, key }: ServingPair): void {
    this.#server.setSecureContext({ cert, key, minVersion: this.#options.minVersion });
  }

  close(): Promise<void> {
    return closeServer(this.#server);
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const release = this.#connections.keepOpen(request.socket);
    try {
      await this.#answer(request, response);
    } catch (error) {
      this.#options.log.error({ err: error }, `metrics cannot be served: ${messageOf(error)}`);
      this.#respond(response, 500, 'see the log\n');
    } finally {
      release();
    }
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { access, registry } = this.#options;
    const refusal = refusalOf(request);
    if (refusal !== undefined) {
      this.#respond(response, refusal.status, refusal.message);
      return;
    }
    const { authorization } = request.headers;
    const decision = await access.decide(authorization, request.socket.remoteAddress ?? '');
    if (decision.status === 200) {
      this.#respond(response, 200, await registry.metrics(), registry.contentType);
      return;
    }
    if (decision.status === 401) response.setHeader('www-authenticate', 'Bearer');
    if (decision.status === 429 || decision.status === 503) response.setHeader('retry-after', RETRY_AFTER_S);
    this.#respond(response, decision.status, `${decision.message}\n`);
  }

  #respond(response: ServerResponse, status: number, body: string, type = 'text/plain; charset=utf-8'): void {
    this.#options.metrics.answered(status);
    if (response.headersSent || response.destroyed) return;
    response.writeHead(status, { 'content-type': type, 'cache-control': 'no-store' }).end(body);
  }
}

/** @returns undefined if a request asks for metrics */
function refusalOf({ url, method }: IncomingMessage): { status: number; message: string } | undefined {
  if (url?.split('?', 1)[0] !== PATH) return { status: 404, message: `not found; available path: ${PATH}\n` };
  if (method !== 'GET' && method !== 'HEAD') return { status: 405, message: 'send a GET\n' };
  return undefined;
}

interface MonitoringMetrics extends CertificateMetrics {
  /** A request for metrics, with its HTTP status. */
  answered: (status: number) => void;
}

export function createMonitoringMetrics(metrics: Metrics): MonitoringMetrics {
  const requests = metrics.counter('metrics_requests_total', 'Requests for metrics over HTTPS, by HTTP status.', [
    'status',
  ]);
  return {
    answered: (status) => requests.inc({ status }),
    certificateExpires: (certificate, at) => metrics.setExpiration('metrics', certificate, at),
  };
}
