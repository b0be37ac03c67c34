import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Server, createServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { type PeerCertificate, TLSSocket } from 'node:tls';
import express, { type Express } from 'express';
import { describeValue } from '../api/json.js';
import { type Clock, systemClock } from '../kube/clock.js';
import { messageOf } from '../kube/errors.js';
import type { Logger } from '../kube/log.js';
import type { BindAddress } from '../process/bind-address.js';
import type { TlsVersion } from '../process/config.js';
import { ConnectionLimit } from '../process/connection-limit.js';
import { BodyBudget } from './body-budget.js';
import { HttpError, peekNamespace, parseBody, readBody, tooManyReviews } from './body.js';
import type { ServingPair } from './certificate-source.js';
import { ReviewError } from './review.js';
import { WeightLimit, WeightLimitError } from './weight-limit.js';

/** An UPDATE holds a pod twice, and a pod has at most 1.5 MB in etcd. */
const MAX_BODY_BYTES = 4 * 1024 * 1024;
/** Longer than the 90 s for which an API server keeps an idle connection, so that it never writes into one that we close. */
const KEEP_ALIVE_MS = 120_000;
/** An API server sends headers and body at once, and waits for at most 30 s, ours for 5. */
const REQUEST_MS = 5_000;
/** Slow requests are looked for this often. */
const CHECK_MS = 1_000;
/** Each API server has a few. A TLS connection costs about 50 KiB. */
const MAX_CONNECTIONS = 512;
/** Of bodies, from their first byte to their answer. */
const MAX_BODIES_BYTES = 64 * 1024 * 1024;
/** Of bodies that are parsed and reviewed at once: parsed JSON takes up to 20 times its size, and the process has 512 MiB. */
const MAX_REVIEWED_BYTES = 8 * 1024 * 1024;
/** Of bodies of one namespace: reviews that wait for live reads must leave room for others. */
const REVIEWED_SHARE = 1 / 2;
const WAITING_SHARE = 1 / 4;
/** With this header, an API server sends a review again, within its own timeout. */
const RETRY_AFTER_S = '1';
/** API servers open connections ahead of requests; Node.js does not count them as idle. */
const STOP_UNUSED_MS = 500;
/** What still runs then is cut off. */
const STOP_MS = 10_000;

export interface AdmissionServerOptions {
  address: BindAddress;
  minVersion: TlsVersion;
  /** If it is there, only clients with a certificate are answered; `allowedNames` are its common names, if it is not empty. */
  clients?: { allowedNames: readonly string[] };
  /** Path → what answers the reviews that are posted there: from the body's JSON to the answer's. */
  routes: Readonly<Record<string, (body: unknown) => Promise<string>>>;
  log: Logger;
  /** Told of each request that was no review. */
  onRejected?: (status: number) => void;
  maxBodyBytes?: number;
  maxBodiesBytes?: number;
  maxConnections?: number;
  /** How long a client may take for its handshake, and how long for a request. */
  requestMs?: number;
  clock?: Clock;
}

/** Serves admission reviews over HTTPS. No request ends it. */
export class AdmissionServer {
  readonly #options: AdmissionServerOptions;
  readonly #server: Server;
  readonly #connections: ConnectionLimit;
  readonly #bodies: BodyBudget;
  readonly #reviews: WeightLimit;
  #pair: ServingPair | undefined;
  #clientAuthorities: string | undefined;
  #stopping = false;

  constructor(options: AdmissionServerOptions) {
    this.#options = options;
    const { minVersion, requestMs = REQUEST_MS } = options;
    const settings = {
      minVersion,
      keepAlive: true,
      keepAliveTimeout: KEEP_ALIVE_MS,
      handshakeTimeout: requestMs,
      headersTimeout: requestMs,
      requestTimeout: requestMs,
      connectionsCheckingInterval: Math.min(CHECK_MS, requestMs),
      ...(options.clients !== undefined && { requestCert: true, rejectUnauthorized: true }),
    };
    this.#server = createServer(settings, this.#createApp());
    this.#connections = new ConnectionLimit(this.#server, options.maxConnections ?? MAX_CONNECTIONS);
    const { maxBodiesBytes = MAX_BODIES_BYTES } = options;
    this.#bodies = new BodyBudget(maxBodiesBytes);
    this.#reviews = new WeightLimit({
      max: MAX_REVIEWED_BYTES,
      maxPerKey: MAX_REVIEWED_BYTES * REVIEWED_SHARE,
      maxWaitingPerKey: maxBodiesBytes * WAITING_SHARE,
    });
    this.#server.on('tlsClientError', (error) => options.log.debug({ err: error }, 'TLS handshake failed'));
  }

  /** The port that is listened on. */
  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /**
   * Listens. Without a certificate no connection comes about.
   * @throws {Error} where the address cannot be listened on
   */
  listen(): Promise<void> {
    const { host, port } = this.#options.address;
    return new Promise((resolve, reject) => {
      this.#server.once('error', (error) =>
        reject(new Error(`cannot listen on ${host ?? ''}:${port}: ${error.message}`)),
      );
      this.#server.listen({ port, ...(host === undefined ? {} : { host }) }, resolve);
    });
  }

  /** New connections get this certificate; those that are open stay. */
  setCertificate(pair: ServingPair): void {
    this.#pair = pair;
    this.#setSecureContext();
  }

  /** The client of a new connection must have a certificate that one of these CAs signed, as PEM. */
  setClientAuthorities(authorities: string): void {
    this.#clientAuthorities = authorities;
    this.#setSecureContext();
  }

  /** Until there is all that is needed, no connection can be made. */
  #setSecureContext(): void {
    const { minVersion, clients } = this.#options;
    const ca = this.#clientAuthorities;
    if (this.#pair === undefined || (clients !== undefined && ca === undefined)) return;
    const { cert, key } = this.#pair;
    this.#server.setSecureContext({ cert, key, minVersion, ...(ca !== undefined && { ca }) });
  }

  /** Takes nothing new and finishes what is under way. */
  async stop(): Promise<void> {
    const { clock = systemClock } = this.#options;
    this.#stopping = true;
    if (!this.#server.listening) return;
    const timers = [
      clock.setTimer(STOP_UNUSED_MS, () => this.#connections.closeUnused()),
      clock.setTimer(STOP_MS, () => this.#server.closeAllConnections()),
    ];
    await new Promise<void>((resolve) => {
      this.#server.close(() => resolve());
      this.#server.closeIdleConnections();
    });
    for (const cancel of timers) cancel();
  }

  #createApp(): Express {
    const app = express();
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
        this.#reject(response, 405, 'only POST, with an AdmissionReview');
      });
    }
    app.use((_request, response) =>
      this.#reject(response, 404, `not found; there is: ${Object.keys(this.#options.routes).join(', ')}`),
    );
    return app;
  }

  /** By name: TLS has verified the certificate. */
  #refuseClient(socket: Socket): string | undefined {
    const { allowedNames = [] } = this.#options.clients ?? {};
    if (allowedNames.length === 0) return undefined;
    // a closed connection has none
    const { subject }: Partial<PeerCertificate> = socket instanceof TLSSocket ? socket.getPeerCertificate() : {};
    const name: unknown = subject?.CN;
    if (typeof name === 'string' && allowedNames.includes(name)) return undefined;
    return `the client certificate is for ${describeValue(name)}, not for ${allowedNames.join(' or ')}`;
  }

  async #serve(
    answer: (body: unknown) => Promise<string>,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    try {
      const body = await readBody(request, this.#options.maxBodyBytes ?? MAX_BODY_BYTES, this.#bodies);
      const release = this.#connections.keepOpen(request.socket);
      try {
        await this.#reviews.run(peekNamespace(body.bytes), body.weight, async () => {
          if (response.destroyed) return; // the caller is gone
          this.#respond(response, 200, 'application/json', await answer(parseBody(body.bytes)));
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
    if (response.destroyed) return; // the caller is gone
    const error = failure instanceof WeightLimitError ? tooManyReviews() : failure;
    if (error instanceof HttpError) {
      // what the caller still sends is not read
      if (error.status === 408) response.setHeader('connection', 'close');
      if (error.status === 503) response.setHeader('retry-after', RETRY_AFTER_S);
      this.#reject(response, error.status, error.message);
    } else if (error instanceof ReviewError) {
      this.#reject(response, 400, error.message);
    } else {
      this.#options.log.error({ err: error }, `request failed: ${messageOf(error)}`);
      this.#reject(response, 500, 'Holdfast failed to answer: see the log of its webhook');
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
