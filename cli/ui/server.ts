import { type Server, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import express, { type Express, type NextFunction, type Request, type Response } from 'express';
import { truncate } from '../../api/json.js';
import { isNamespaceName, isObjectName } from '../../api/meta.js';
import type { Clock } from '../../kube/clock.js';
import { ConnectionLimit } from '../../process/listening.js';
import { CommandError } from '../exit-code.js';
import { PAGE, type PageFiles, SECURITY_HEADERS, leadingPage, refusalPage, stateStyles } from './html.js';
import type { ServerView, ViewRequest } from './protocol.js';
import { type Sessions, refusalOf } from './session.js';
import { ViewStreams } from './view-stream.js';

/** A browser opens up to six connections to a host. Connections above this close others of the same address. */
const MAX_CONNECTIONS = 64;
/** Each page has one, while it is visible. */
const MAX_STREAMS = 24;
const REQUEST_MS = 5_000;
const KEEP_ALIVE_MS = 5_000;
const MAX_QUERY_LENGTH = 256;
const COOKIE = 'holdfast';

interface UiServerOptions {
  readonly page: PageFiles;
  readonly sessions: Sessions;
  readonly clock: Clock;
  readonly buildView: (request: ViewRequest) => ServerView;
  /** Watches what only this view needs. @returns a function that ends that */
  readonly watchFor: (request: ViewRequest) => () => void;
  /** Called when a browser has used a token. */
  readonly onOpened: () => void;
}

/** Serves the page and its views on loopback, to browsers with a session. It only reads. */
export class UiServer {
  readonly #options: UiServerOptions;
  readonly #server: Server;
  readonly #connections: ConnectionLimit;
  readonly #streams: ViewStreams;

  constructor(options: UiServerOptions) {
    this.#options = options;
    this.#streams = new ViewStreams(options.clock, MAX_STREAMS);
    const limits = { headersTimeout: REQUEST_MS, requestTimeout: REQUEST_MS, keepAliveTimeout: KEEP_ALIVE_MS };
    this.#server = createServer({ ...limits, connectionsCheckingInterval: REQUEST_MS / 5 }, this.#createApp());
    this.#connections = new ConnectionLimit(this.#server, MAX_CONNECTIONS);
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** @param port 0: a free one @throws {CommandError} if it is in use */
  listen(port: number): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#server.once('error', (error) =>
        reject(new CommandError(`cannot listen on 127.0.0.1:${port}: ${error.message}: choose another --port`)),
      );
      this.#server.listen({ host: '127.0.0.1', port }, resolve);
    });
  }

  /** Returns a URL that opens the page once. */
  entranceUrl(): string {
    return `http://127.0.0.1:${this.port}/?token=${this.#options.sessions.issueToken()}`;
  }

  /** Called after each change of anything that a view may show. */
  changed(): void {
    this.#streams.changed();
  }

  async stop(): Promise<void> {
    this.#streams.close();
    if (!this.#server.listening) return;
    await new Promise<void>((resolve) => {
      this.#server.close(() => resolve());
      this.#server.closeAllConnections();
    });
  }

  #createApp(): Express {
    const app = express();
    app.disable('x-powered-by');
    app.disable('etag');
    app.set('query parser', 'simple');
    app.use((request, response, next) => this.#check(request, response, next));
    app.get('/', (request, response) => this.#enter(request, response));
    app.use('/:session', (request, response, next) => {
      const isOpen = this.#options.sessions.isOpen(request.params.session, cookieOf(request));
      if (isOpen) next();
      else refuse(response, 403, 'there is no session');
    });
    app.get('/:session/', (_request, response) => reply(response, 'text/html', PAGE));
    app.get('/:session/page.js', (_request, response) => reply(response, 'text/javascript', this.#options.page.script));
    app.get('/:session/page.css', (_request, response) =>
      reply(response, 'text/css', `${stateStyles()}\n${this.#options.page.style}`),
    );
    app.get('/:session/views', (request, response) => this.#stream(request, response));
    app.use((_request, response) => refuse(response, 404, 'there is no such page'));
    // Express knows it by its four parameters
    app.use((error: unknown, _request: Request, response: Response, next: NextFunction) => {
      if (response.headersSent) next(error);
      else refuse(response, 400, 'the request cannot be read');
    });
    return app;
  }

  #check({ method, headers, path, query }: Request, response: Response, next: NextFunction): void {
    response.set(SECURITY_HEADERS);
    const isEntrance = path === '/' && query.token !== undefined;
    const refusal = refusalOf({ method, headers, isEntrance }, this.port);
    if (refusal === undefined) {
      next();
      return;
    }
    if (refusal.status === 405) response.set('allow', 'GET, HEAD');
    refuse(response, refusal.status, refusal.message);
  }

  /** Exchanges the token. HEAD does not use it: programs send it to preview links. */
  #enter({ method, query }: Request, response: Response): void {
    const token = textOf(query.token);
    const session = method === 'GET' && token !== '' ? this.#options.sessions.open(token) : undefined;
    if (session === undefined) {
      const message = token === '' ? 'the address has no token' : 'the token is not valid, or was used already';
      refuse(response, 403, message);
      return;
    }
    this.#options.onOpened();
    response.set('set-cookie', `${COOKIE}=${session.cookie}; Path=/${session.path}/; HttpOnly; SameSite=Strict`);
    reply(response, 'text/html', leadingPage(`/${session.path}/`));
  }

  #stream(request: Request, response: Response): void {
    const view = readViewRequest(request);
    if (view === undefined || request.method === 'HEAD') {
      refuse(response, 400, 'the view cannot be read');
      return;
    }
    if (this.#streams.isFull) {
      refuse(response, 403, 'too many pages are open');
      return;
    }
    const { buildView, watchFor } = this.#options;
    const endWatch = watchFor(view);
    const release = this.#connections.keepOpen(request.socket);
    response.once('close', () => {
      endWatch();
      release();
    });
    this.#streams.open(response, () => buildView(view));
  }
}

/** @returns undefined if a parameter is not what the page sends */
function readViewRequest({ query }: Request): ViewRequest | undefined {
  const [view, namespace, name] = [query.view, query.namespace, query.name].map(textOf) as [string, string, string];
  // they become parts of paths on the API server
  if (view === 'vm' && !(isNamespaceName(namespace) && isObjectName(name))) return undefined;
  const bits = textOf(query.bits);
  return {
    view,
    namespace,
    name,
    query: textOf(query.q),
    sort: textOf(query.sort),
    at: textOf(query.at),
    bits: /^\d{1,3}$/.test(bits) ? Number(bits) : undefined,
  };
}

/** A parameter may be absent, or a list. */
function textOf(value: unknown): string {
  return typeof value === 'string' ? truncate(value, MAX_QUERY_LENGTH) : '';
}

function cookieOf({ headers }: Request): string {
  const pairs = (headers.cookie ?? '').split(';').map((pair) => pair.trim());
  return pairs.find((pair) => pair.startsWith(`${COOKIE}=`))?.slice(COOKIE.length + 1) ?? '';
}

function reply(response: Response, type: string, body: string): void {
  response.status(200).type(type).send(body);
}

function refuse(response: Response, status: number, message: string): void {
  response.status(status).type('text/html').send(refusalPage(message));
}
