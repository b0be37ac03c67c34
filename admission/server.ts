import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { type Server, createServer } from 'node:https';
import { type AddressInfo, type Socket, Server as TcpServer } from 'node:net';
import { type PeerCertificate, TLSSocket } from 'node:tls';
import express from 'express';
import { describeValue } from '../api/json.js';
import { type Clock, systemClock } from '../kube/clock.js';
import { TimeSlice } from '../kube/run-in-slices.js';
import { messageOf } from '../kube/errors.js';
import type { Logger } from '../kube/log.js';
import { type BindAddress, ConnectionLimit, listenOn } from '../process/listening.js';
import type { TlsVersion } from '../process/config/config.js';
import { BodyBudget, HttpError, parseBody, peekNamespace, readBody, tooManyReviews } from './body.js';
import type { ServingPair } from '../tls/certificate-source.js';
import { FairSemaphore, FairSemaphoreError } from '../kube/fair-semaphore.js';
import { ReviewError } from './review.js';

/** An UPDATE contains a pod twice, and a pod has at most 1.5 MB in etcd. */
const MAX_BODY_BYTES = 4 * 1024 * 1024;
/**
 * More than the 90 s for which an API server keeps an idle connection, so that it never uses one that we close. It opens connections before it needs
 * them, so the first request may arrive as late. The limits below bound slow requests.
 */
const IDLE_MS = 120_000;
const HANDSHAKE_MS = 5_000;
/** API servers send less than ten. Each takes more memory than its text. */
const MAX_HEADERS = 64;
/** Each API server has a few connections. A TLS connection uses about 50 KiB. */
const MAX_CONNECTIONS = 512;
/** Limit for all bodies, from their first byte to their response. */
const MAX_BODIES_BYTES = 64 * 1024 * 1024;
/** Limit for bodies that are parsed and reviewed together. Parsed JSON uses up to 20 times its size, and the process has 512 MiB. */
const MAX_REVIEWED_BYTES = 8 * 1024 * 1024;
/** Shares of one namespace, because reviews that wait for live reads must leave room for other namespaces. */
const REVIEWED_SHARE = 1 / 2;
const QUEUED_SHARE = 1 / 4;
/** With this header, an API server retries a review within its own timeout. */
const RETRY_AFTER_S = '1';
/** API servers do not repeat a review whose connection was closed when they sent it. Within this time, connections in use end with an answer. */
const STOP_IDLE_MS = 2_000;
/** After this time, running requests are aborted. */
const STOP_MS = 10_000;

/** @param arrivedAt when the request had arrived completely, by the server's clock */
type Route = (body: unknown, arrivedAt: number) => Promise<string>;

/** Of Node.js: what Express adds to requests and responses, such as `send()`, needs packages that bundles of processes lack. */
type Handler = (request: IncomingMessage, response: ServerResponse, next: () => void) => unknown;

/** The part of an Express app that is used. */
interface App extends RequestListener {
  disable(setting: string): unknown;
  use(handler: Handler): unknown;
  post(path: string, handler: Handler): unknown;
  all(path: string, handler: Handler): unknown;
}

export interface AdmissionServerOptions {
  address: BindAddress;
  minVersion: TlsVersion;
  /** If set, only clients with a certificate are answered. `allowedNames`, if not empty, are the allowed common names. */
  clients?: { allowedNames: readonly string[] };
  /** By path: the function that answers a review; from the JSON of the body to the body of the response. */
  routes: Readonly<Record<string, Route>>;
  log: Logger;
  /** Called for each request that was not a review. */
  onRejected?: (status: number) => void;
  maxBodyBytes?: number;
  maxBodiesBytes?: number;
  maxConnections?: number;
  /** Time limit for a request, and for the first request on a connection. */
  requestMs?: number;
  clock?: Clock;
}

/** Serves admission reviews over HTTPS. Errors of requests never end it. */
export class AdmissionServer {
  readonly #options: AdmissionServerOptions;
  readonly #server: Server;
  readonly #connections: ConnectionLimit;
  readonly #bodies: BodyBudget;
  readonly #reviews: FairSemaphore;
  #pair: ServingPair | undefined;
  #clientAuthorities: string | undefined;
  #stopping = false;

  constructor(options: AdmissionServerOptions) {
    this.#options = options;
    const { minVersion, requestMs = IDLE_MS } = options;
    const settings = {
      minVersion,
      keepAlive: true,
      keepAliveTimeout: IDLE_MS,
      handshakeTimeout: HANDSHAKE_MS,
      headersTimeout: requestMs,
      requestTimeout: requestMs,
      connectionsCheckingInterval: requestMs / 4,
      ...(options.clients !== undefined && { requestCert: true, rejectUnauthorized: true }),
    };
    this.#server = createServer(settings, this.#createApp());
    this.#server.maxHeadersCount = MAX_HEADERS;
    this.#connections = new ConnectionLimit(this.#server, options.maxConnections ?? MAX_CONNECTIONS);
    const { maxBodiesBytes = MAX_BODIES_BYTES } = options;
    this.#bodies = new BodyBudget(maxBodiesBytes);
    const limits = {
      max: MAX_REVIEWED_BYTES,
      maxPerKey: MAX_REVIEWED_BYTES * REVIEWED_SHARE,
      maxQueuedPerKey: maxBodiesBytes * QUEUED_SHARE,
    };
    this.#reviews = new FairSemaphore(limits, (namespace) => `reviews of namespace ${namespace}`);
    this.#server.on('tlsClientError', (error) => options.log.debug({ err: error }, 'TLS handshake failed'));
  }

  /** The port of the server. */
  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /**
   * Starts to listen. Handshakes fail until there is a certificate.
   * @throws {Error} if the server cannot listen on the address
   */
  listen(): Promise<void> {
    return listenOn(this.#server, this.#options.address);
  }

  /** Sets the certificate for new connections. Open connections stay. */
  setCertificate(pair: ServingPair): void {
    this.#pair = pair;
    this.#setSecureContext();
  }

  /** Sets the CAs, as PEM: clients of new connections need a certificate that one of them signed. */
  setClientAuthorities(authorities: string): void {
    this.#clientAuthorities = authorities;
    this.#setSecureContext();
  }

  /** Has no effect until certificate and CAs are known: no connection is possible before. */
  #setSecureContext(): void {
    const { minVersion, clients } = this.#options;
    const ca = this.#clientAuthorities;
    if (this.#pair === undefined || (clients !== undefined && ca === undefined)) return;
    const { cert, key } = this.#pair;
    this.#server.setSecureContext({ cert, key, minVersion, ...(ca !== undefined && { ca }) });
  }

  /** Accepts no more connections and finishes running requests. Idle connections end with their next answer, or after a while. */
  async stop(): Promise<void> {
    const { clock = systemClock } = this.#options;
    this.#stopping = true;
    if (!this.#server.listening) return;
    const timers = [
      clock.setTimer(STOP_IDLE_MS, () => this.#closeIdle()),
      clock.setTimer(STOP_MS, () => this.#server.closeAllConnections()),
    ];
    // close() of an HTTPS server would close idle connections at once
    await new Promise<void>((resolve) => TcpServer.prototype.close.call(this.#server, () => resolve()));
    for (const cancel of timers) cancel();
    // ends the search for slow requests, too
    this.#server.close();
  }

  #closeIdle(): void {
    this.#server.closeIdleConnections();
    // API servers open connections before they need them; Node.js does not count these as idle
    this.#connections.closeUnused();
  }

  #createApp(): App {
    const app: App = express();
    app.disable('x-powered-by');
    app.disable('etag');
    app.use((request, response, next) => {
      const refusal = this.#refuseClient(request.socket);
      if (refusal === undefined) next();
      else this.#reject(response, 403, refusal);
    });
    for (const [path, answer] of Object.entries(this.#options.routes)) {
      app.post(path, (request, response) => this.#serve(answer, request, response));
      app.all(path, (_request, response) => {
        response.setHeader('allow', 'POST');
        this.#reject(response, 405, 'send a POST with an AdmissionReview');
      });
    }
    app.use((_request, response) =>
      this.#reject(response, 404, `not found; available paths: ${Object.keys(this.#options.routes).join(', ')}`),
    );
    return app;
  }

  /** Checks the common name. TLS has already verified the certificate. */
  #refuseClient(socket: Socket): string | undefined {
    const { allowedNames = [] } = this.#options.clients ?? {};
    if (allowedNames.length === 0) return undefined;
    // a closed connection has no certificate
    const { subject }: Partial<PeerCertificate> = socket instanceof TLSSocket ? socket.getPeerCertificate() : {};
    const name: unknown = subject?.CN;
    if (typeof name === 'string' && allowedNames.includes(name)) return undefined;
    return `the client certificate is for ${describeValue(name)}, not for ${allowedNames.join(' or ')}`;
  }

  async #serve(answer: Route, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { clock = systemClock } = this.#options;
    try {
      const body = await readBody(request, this.#options.maxBodyBytes ?? MAX_BODY_BYTES, this.#bodies);
      const arrivedAt = clock.now();
      const release = this.#connections.keepOpen(request.socket);
      try {
        await this.#reviews.run(peekNamespace(body.bytes), body.weight, async () => {
          const slice = new TimeSlice(clock);
          // requests that have arrived meanwhile are seen now, so that their time counts and namespaces take turns
          if (slice.isOver) await slice.renew();
          if (response.destroyed) return; // the client has disconnected
          this.#respond(response, 200, 'application/json', await answer(parseBody(body.bytes), arrivedAt));
        });
      } finally {
        release();
        body.release();
      }
    } catch (error) {
      this.#fail(error, response);
    }
  }

  #fail(failure: unknown, response: ServerResponse): void {
    if (response.destroyed) return; // the client has disconnected
    const error = failure instanceof FairSemaphoreError ? tooManyReviews() : failure;
    if (error instanceof HttpError) {
      // the rest of the body is not read
      if (error.status === 408) response.setHeader('connection', 'close');
      if (error.status === 503) response.setHeader('retry-after', RETRY_AFTER_S);
      this.#reject(response, error.status, error.message);
    } else if (error instanceof ReviewError) {
      this.#reject(response, 400, error.message);
    } else {
      this.#options.log.error({ err: error }, `request failed: ${messageOf(error)}`);
      this.#reject(
        response,
        500,
        'Holdfast could not answer because of an internal error: see the log of the pod that serves this webhook',
      );
    }
  }

  #reject(response: ServerResponse, status: number, message: string): void {
    this.#options.onRejected?.(status);
    this.#respond(response, status, 'text/plain; charset=utf-8', `${message}\n`);
  }

  #respond(response: ServerResponse, status: number, type: string, body: string): void {
    if (response.headersSent || response.destroyed) return;
    if (this.#stopping) response.setHeader('connection', 'close');
    response.writeHead(status, { 'content-type': type, 'content-length': Buffer.byteLength(body) }).end(body);
  }
}
