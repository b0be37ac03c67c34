import { createSecureContext } from 'node:tls';
import { Agent, buildConnector } from 'undici';
import type { Clock } from '../clock.js';
import type { Credentials, RequestHeaders, TlsOptions } from './credentials.js';

/** Rotated tokens and certificates are noticed within this time. */
const CREDENTIALS_MAX_AGE_MS = 60_000;
/** After this time, loading of credentials is started again. */
const LOADING_MAX_AGE_MS = 30_000;
/** Less than the 90 s after which kube-apiserver closes an idle connection, so that we close it first. */
const KEEP_ALIVE_MS = 60_000;
/** TCP keep-alive: Node then sends 10 probes, one per second, so that a lost peer is noticed within half a minute. */
const KEEP_ALIVE_PROBE_MS = 15_000;
const CONNECT_TIMEOUT_MS = 10_000;
/** If a server always answers 401, an exec plugin must not run for every request. */
const REFRESH_MIN_INTERVAL_MS = 1_000;

interface SessionOptions {
  credentials: Credentials;
  connections: number;
  userAgent: string;
  clock: Clock;
}

/** What a request needs: connections and credentials. */
export interface Session {
  requests: Agent;
  /** For streams, which are long-lived and must not use up the connections of requests. */
  streams: Agent;
  headers: RequestHeaders;
}

/** Keeps the current session. Agents are rebuilt only when TLS material changes; headers are read at most once a minute. */
export class SessionCache {
  readonly #options: SessionOptions;
  readonly #agents = new Set<Agent>();
  #session: Session | undefined;
  #fingerprint = '';
  #loadedAt = 0;
  #refreshedAt = Number.NEGATIVE_INFINITY;
  #loading: Promise<Session> | undefined;
  #loadingSince = 0;

  constructor(options: SessionOptions) {
    this.#options = options;
  }

  /** The session that was loaded last: connections of earlier ones take no new requests. */
  get latest(): Session | undefined {
    return this.#session;
  }

  /** Returns the current session, synchronously if it is recent: the common case. */
  current(): Session | Promise<Session> {
    const now = this.#options.clock.now();
    if (this.#session !== undefined && now - this.#loadedAt < CREDENTIALS_MAX_AGE_MS) return this.#session;
    return this.#reload(false);
  }

  /** Called after a 401 to `refused`: returns a session with new credentials, or a newer one that another caller got. */
  async renew(refused: Session): Promise<Session> {
    if (this.#session !== undefined && this.#session !== refused) return this.#session;
    const now = this.#options.clock.now();
    if (this.#loading === undefined && now - this.#refreshedAt < REFRESH_MIN_INTERVAL_MS) return refused;
    this.#refreshedAt = now;
    return this.#reload(true);
  }

  /** Closes all connections at once. */
  async close(): Promise<void> {
    await Promise.all([...this.#agents].map((agent) => agent.destroy()));
    this.#agents.clear();
  }

  #reload(refresh: boolean): Promise<Session> {
    const now = this.#options.clock.now();
    // Do not wait again and again for a plugin that hangs.
    if (this.#loading !== undefined && now - this.#loadingSince < LOADING_MAX_AGE_MS) return this.#loading;
    const loading = this.#load(refresh).finally(() => {
      if (this.#loading === loading) this.#loading = undefined;
    });
    this.#loading = loading;
    this.#loadingSince = now;
    return loading;
  }

  async #load(refresh: boolean): Promise<Session> {
    const { credentials, userAgent, clock } = this.#options;
    if (refresh) await credentials.refresh();
    const tls = await credentials.tls();
    const headers = { ...(await credentials.headers()), 'user-agent': userAgent };
    const fingerprint = fingerprintOf(tls);
    const known = fingerprint === this.#fingerprint ? this.#session : undefined;
    const agents = known ?? this.#replaceAgents(tls);
    this.#fingerprint = fingerprint;
    this.#loadedAt = clock.now();
    this.#session = { requests: agents.requests, streams: agents.streams, headers };
    return this.#session;
  }

  #replaceAgents(tls: TlsOptions): { requests: Agent; streams: Agent } {
    // Both agents share certificates that are parsed once, and TLS sessions, which new connections resume.
    const { ca, cert, key, ...checks } = tls;
    const secureContext = createSecureContext({ ca, cert, key });
    const keepAlive = { keepAlive: true, keepAliveInitialDelay: KEEP_ALIVE_PROBE_MS };
    const connect = buildConnector({ ...checks, ...keepAlive, secureContext, timeout: CONNECT_TIMEOUT_MS });
    // Running requests and streams finish on the old connections.
    for (const agent of this.#agents) {
      const forget = () => void this.#agents.delete(agent);
      agent.close().then(forget, forget);
    }
    const requests = this.#makeAgent(connect, this.#options.connections);
    const streams = this.#makeAgent(connect, null);
    return { requests, streams };
  }

  #makeAgent(connect: buildConnector.connector, connections: number | null): Agent {
    const agent = new Agent({
      connections,
      pipelining: 1,
      keepAliveTimeout: KEEP_ALIVE_MS,
      // Our own deadlines cover the queue, the headers and the body together.
      headersTimeout: 0,
      bodyTimeout: 0,
      connect,
    });
    this.#agents.add(agent);
    return agent;
  }
}

function fingerprintOf(tls: TlsOptions): string {
  return [tls.ca, tls.cert, tls.key, tls.servername, tls.rejectUnauthorized].map((part) => String(part)).join('\n');
}
