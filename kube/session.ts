import { Agent } from 'undici';
import type { Clock } from './clock.js';
import type { Credentials, TlsOptions } from './credentials.js';

/** Rotated tokens and certificates are noticed after this long at the latest. */
const CREDENTIALS_MAX_AGE_MS = 60_000;
/** After it, loading credentials is begun once more. */
const LOADING_MAX_AGE_MS = 30_000;
/** Below the 90 s after which kube-apiserver closes an idle connection, so that we close it first. */
const KEEP_ALIVE_MS = 60_000;
/** Of TCP; Node sends 10 probes a second apart after it, so that a peer that vanished is noticed within half a minute. */
const KEEP_ALIVE_PROBE_MS = 15_000;
const CONNECT_TIMEOUT_MS = 10_000;
/** A server that answers 401 to everything must not make an exec plugin run for every request. */
const REFRESH_MIN_INTERVAL_MS = 1_000;

export interface SessionOptions {
  credentials: Credentials;
  connections: number;
  userAgent: string;
  clock: Clock;
}

/** What a request needs: where to go, as whom, over which connections. */
export interface Session {
  requests: Agent;
  /** Streams live long: they do not take connections away from requests. */
  streams: Agent;
  headers: Record<string, string>;
}

/** Keeps the one current session: agents are rebuilt only when TLS material changes, headers are read at most once a minute. */
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

  /** The current session, synchronously where it is young enough: the common case of every request. */
  current(): Session | Promise<Session> {
    const now = this.#options.clock.now();
    if (this.#session !== undefined && now - this.#loadedAt < CREDENTIALS_MAX_AGE_MS) return this.#session;
    return this.#reload(false);
  }

  /** After a 401 to `refused`: a session with new credentials, or the newer one that somebody else got meanwhile. */
  async renew(refused: Session): Promise<Session> {
    if (this.#session !== undefined && this.#session !== refused) return this.#session;
    const now = this.#options.clock.now();
    if (this.#loading === undefined && now - this.#refreshedAt < REFRESH_MIN_INTERVAL_MS) return refused;
    this.#refreshedAt = now;
    return this.#reload(true);
  }

  /** Breaks all connections. */
  async close(): Promise<void> {
    await Promise.all([...this.#agents].map((agent) => agent.destroy()));
    this.#agents.clear();
  }

  #reload(refresh: boolean): Promise<Session> {
    const now = this.#options.clock.now();
    // A plugin that hangs is not waited for again and again.
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
    // Running requests and streams end by themselves on the old connections.
    for (const agent of this.#agents) {
      const forget = () => void this.#agents.delete(agent);
      agent.close().then(forget, forget);
    }
    const requests = this.#makeAgent(tls, this.#options.connections);
    const streams = this.#makeAgent(tls, null);
    return { requests, streams };
  }

  #makeAgent(tls: TlsOptions, connections: number | null): Agent {
    const agent = new Agent({
      connections,
      pipelining: 1,
      keepAliveTimeout: KEEP_ALIVE_MS,
      // Deadlines are ours: they cover the queue, the headers and the body together.
      headersTimeout: 0,
      bodyTimeout: 0,
      connect: { ...tls, timeout: CONNECT_TIMEOUT_MS, keepAlive: true, keepAliveInitialDelay: KEEP_ALIVE_PROBE_MS },
    });
    this.#agents.add(agent);
    return agent;
  }
}

function fingerprintOf(tls: TlsOptions): string {
  return [tls.ca, tls.cert, tls.key, tls.servername, tls.rejectUnauthorized].map((part) => String(part)).join('\n');
}
