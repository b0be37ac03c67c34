import type { Dispatcher } from 'undici';
import { parseAnswer, readJsonLines, readLast, statusErrorOf, transportErrorOf } from './responses.js';
import { type Clock, type Random, systemClock } from '../clock.js';
import type { Credentials, RequestHeaders } from './credentials.js';
import { Deadline } from './deadline.js';
import { StatusError, TransportError, messageOf } from '../errors.js';
import { type KubeMetrics, silentMetrics } from '../metrics.js';
import { RequestTurns } from './request-turns.js';
import { type RetryState, planRetry } from '../retry.js';
import { type Session, SessionCache } from './session.js';

export interface TransportOptions {
  /** Maximum number of connections for requests; each watch has one of its own. Default 16. */
  connections?: number;
  /** Deadline of a request with its retries. Default 15 000. */
  deadlineMs?: number;
  userAgent?: string;
  clock?: Clock;
  random?: Random;
  metrics?: KubeMetrics;
}

export type Query = Record<string, string | number | boolean | undefined>;

export interface ApiRequest {
  method: string;
  /** Below the server's base URL; begins with a slash. */
  path: string;
  query?: Query | undefined;
  /** Sent as JSON. */
  body?: unknown;
  contentType?: string | undefined;
  accept?: string | undefined;
  /** Objects are parsed without managedFields, which are half of a real one. */
  dropsManagedFields?: boolean | undefined;
  deadlineMs?: number | undefined;
  signal?: AbortSignal | undefined;
  /** The namespace whose turn the request takes. Default: that of the path; all other requests are one group. */
  tenant?: string | undefined;
}

export interface StreamRequest {
  path: string;
  query?: Query | undefined;
  accept?: string | undefined;
  /** Ends the stream without an error. */
  signal: AbortSignal;
  /** A stream without a complete value for this time counts as broken. */
  idleMs: number;
}

type HttpResponse = Dispatcher.ResponseData;
type Splitter<V> = (body: AsyncIterable<Buffer>) => AsyncIterable<V>;

/**
 * JSON over HTTPS to one API server: kept-alive connections, deadlines, bounded retries and typed errors. Namespaces take turns: the requests of one
 * tenant wait for each other, not those of others.
 */
export class Transport {
  readonly #origin: string;
  readonly #basePath: string;
  readonly #sessions: SessionCache;
  readonly #turns: RequestTurns;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #metrics: KubeMetrics;
  readonly #deadlineMs: number;

  constructor(credentials: Credentials, options: TransportOptions = {}) {
    const { connections = 16, deadlineMs = 15_000, userAgent = 'holdfast', clock = systemClock } = options;
    const server = new URL(credentials.server);
    this.#origin = server.origin;
    this.#basePath = server.pathname.replace(/\/+$/, '');
    this.#sessions = new SessionCache({ credentials, connections, userAgent, clock });
    this.#turns = new RequestTurns(connections);
    this.#clock = clock;
    this.#random = options.random ?? Math.random;
    this.#metrics = options.metrics ?? silentMetrics;
    this.#deadlineMs = deadlineMs;
  }

  /**
   * @returns the JSON of the response; undefined if it has no body
   * @throws {StatusError | TransportError}
   */
  async request(request: ApiRequest): Promise<unknown> {
    return this.#answer(request, async ({ body }) => parseAnswer(await body.bytes(), request.dropsManagedFields));
  }

  /**
   * Reads an answer that is not JSON, such as a log, whose end is its newest part.
   * @returns its last `maxBytes` bytes
   * @throws {StatusError | TransportError}
   */
  async text(request: ApiRequest, maxBytes: number): Promise<{ text: string; isCut: boolean }> {
    return this.#answer({ accept: '*/*', ...request }, ({ body }) => readLast(body as AsyncIterable<Buffer>, maxBytes));
  }

  async #answer<R>(request: ApiRequest, read: (answer: HttpResponse) => Promise<R>): Promise<R> {
    const limit = request.deadlineMs ?? this.#deadlineMs;
    const end = this.#clock.now() + limit;
    const deadline = new Deadline(this.#clock, request.signal);
    deadline.limit(limit, 'deadline');
    try {
      return await this.#withRetries(request, deadline, end, (latest) =>
        this.#turns.run(request, deadline, () => this.#exchange(latest(), request, deadline, read)),
      );
    } finally {
      deadline.clear();
    }
  }

  /**
   * Yields the newline-delimited JSON values of a watch. The iteration ends without an error when the server ends it or the caller aborts.
   * @throws {StatusError | TransportError} from the iteration
   */
  stream(request: StreamRequest): AsyncGenerator<unknown, void, undefined> {
    return this.#stream(request, readJsonLines);
  }

  /** Yields the bytes of an answer of any length, such as a log. It ends like {@link stream}. */
  chunks(request: StreamRequest): AsyncGenerator<Buffer, void, undefined> {
    return this.#stream({ accept: '*/*', ...request }, (body) => body);
  }

  async *#stream<V>(request: StreamRequest, split: Splitter<V>): AsyncGenerator<V, void, undefined> {
    const deadline = new Deadline(this.#clock, request.signal);
    try {
      const answer = await this.#openStream(request, deadline);
      deadline.limit(request.idleMs, 'idle');
      yield* this.#read(split(answer.body as AsyncIterable<Buffer>), request, deadline);
    } catch (error) {
      if (!request.signal.aborted) throw error;
    } finally {
      deadline.clear();
    }
  }

  async *#read<V>(
    values: AsyncIterable<V>,
    request: StreamRequest,
    deadline: Deadline,
  ): AsyncGenerator<V, void, undefined> {
    try {
      for await (const value of values) {
        // the time that the caller takes is not the server's
        deadline.pause();
        yield value;
        deadline.limit(request.idleMs, 'idle');
      }
    } catch (error) {
      throw deadline.error(`GET ${request.path}`) ?? transportErrorOf(`GET ${request.path}`, error);
    }
  }

  /** Aborts running requests and closes all connections. */
  async close(): Promise<void> {
    await this.#sessions.close();
  }

  async #openStream(request: StreamRequest, deadline: Deadline): Promise<HttpResponse> {
    const end = this.#clock.now() + this.#deadlineMs;
    deadline.limit(this.#deadlineMs, 'deadline');
    const asRequest: ApiRequest = { ...request, method: 'GET' };
    return this.#withRetries(asRequest, deadline, end, async (latest) => {
      const session = latest();
      const answer = await this.#send(session.streams, session, asRequest, deadline);
      if (answer.statusCode >= 300) throw await this.#refusal(asRequest, answer);
      return answer;
    });
  }

  async #withRetries<R>(
    request: ApiRequest,
    deadline: Deadline,
    end: number,
    attempt: (latest: () => Session) => Promise<R>,
  ): Promise<R> {
    const name = describeRequest(request);
    const attempts: RetryState = { refreshed: false, resent: false, refusals: 0 };
    let session = await this.#session(name, deadline);
    // certificates may be rotated while a request waits for its turn
    const latest = () => (session = this.#sessions.latest ?? session);
    for (;;) {
      try {
        return await attempt(latest);
      } catch (thrown) {
        const isKnown =
          thrown instanceof StatusError || (thrown instanceof TransportError && thrown.fault === 'unsent');
        const error = isKnown ? thrown : (deadline.error(name) ?? transportErrorOf(name, thrown));
        const readOnly = request.method === 'GET';
        const remainingMs = end - this.#clock.now();
        const retry = planRetry(error, { readOnly, remainingMs, random: this.#random }, attempts);
        if (retry === undefined) throw error;
        if (retry === 'refresh') {
          attempts.refreshed = true;
          session = await this.#renewed(session, error, deadline);
        } else {
          if (error instanceof StatusError) attempts.refusals++;
          else attempts.resent = true;
          await this.#clock.sleep(retry.after, deadline.signal);
          session = await this.#session(name, deadline);
        }
      }
    }
  }

  async #session(name: string, deadline: Deadline): Promise<Session> {
    const current = this.#sessions.current();
    if (!(current instanceof Promise)) return current;
    try {
      // An exec plugin may hang.
      return await deadline.race(current);
    } catch (error) {
      const late = deadline.error(name);
      if (late !== undefined) throw late;
      throw new TransportError('unsent', `${name}: cannot load credentials: ${messageOf(error)}`, error);
    }
  }

  /** Throws the server's error if there are no new credentials, because it is more useful than the reason for that. */
  async #renewed(session: Session, refusal: Error, deadline: Deadline): Promise<Session> {
    const renewed = await deadline.race(this.#sessions.renew(session)).catch(() => session);
    if (renewed === session) throw refusal;
    return renewed;
  }

  async #exchange<R>(
    session: Session,
    request: ApiRequest,
    deadline: Deadline,
    read: (answer: HttpResponse) => Promise<R>,
  ): Promise<R> {
    const started = this.#clock.now();
    let code = 'error';
    try {
      const answer = await this.#send(session.requests, session, request, deadline);
      code = String(answer.statusCode);
      if (answer.statusCode >= 300) throw await this.#refusal(request, answer);
      return await read(answer);
    } finally {
      this.#metrics.requested(request.method, code, (this.#clock.now() - started) / 1000);
    }
  }

  async #send(
    dispatcher: Dispatcher,
    session: Session,
    request: ApiRequest,
    deadline: Deadline,
  ): Promise<HttpResponse> {
    const headers: RequestHeaders = { ...session.headers, accept: request.accept ?? 'application/json' };
    if (request.body !== undefined) headers['content-type'] = request.contentType ?? 'application/json';
    const answer = dispatcher.request({
      // The next watch gets a connection of its own: through a load balancer, it leaves an API server that is no longer ready.
      reset: dispatcher === session.streams,
      origin: this.#origin,
      path: `${this.#basePath}${request.path}${queryString(request.query)}`,
      method: request.method,
      headers,
      body: request.body === undefined ? null : JSON.stringify(request.body),
      signal: deadline.signal,
    });
    // undici checks the signal only when it has a connection
    return deadline.race(answer);
  }

  async #refusal(request: ApiRequest, answer: HttpResponse): Promise<StatusError> {
    return statusErrorOf(describeRequest(request), answer.statusCode, answer.headers, await answer.body.text());
  }
}

/** The part of a transport that clients use. */
export type ClientTransport = Pick<Transport, 'request' | 'stream' | 'close'>;

/** Omits the query, which may be long. */
function describeRequest(request: ApiRequest): string {
  return `${request.method} ${request.path}`;
}

function queryString(query: Query | undefined): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query ?? {})) {
    if (value !== undefined) parameters.append(name, String(value));
  }
  return parameters.size === 0 ? '' : `?${parameters.toString()}`;
}
