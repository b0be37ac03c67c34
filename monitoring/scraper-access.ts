import { createHmac, randomBytes } from 'node:crypto';
import { describeValue } from '../api/json.js';
import { setMostRecent } from '../kube/informers/cache.js';
import type { Client } from '../kube/client.js';
import type { Clock } from '../kube/clock.js';
import { messageOf } from '../kube/errors.js';
import type { Logger } from '../kube/log.js';
import {
  SUBJECT_ACCESS_REVIEWS,
  type SubjectAccessReview,
  TOKEN_REVIEWS,
  type TokenReview,
  type UserInfo,
} from '../kube/resources.js';
import { TokenBuckets } from '../kube/token-buckets.js';

/** What a scraper must be allowed to do: RBAC's nonResourceURLs and verb. */
const RIGHT = { path: '/metrics', verb: 'get' } as const;
/** Less than the time that Prometheus waits for a scrape, 10 s. */
const REVIEW_MS = 4_000;
/** The same times as controller-runtime's. */
const TOKENS = { acceptedMs: 60_000, rejectedMs: 60_000, maxProtected: 256, maxOthers: 1_024 };
const USERS = { acceptedMs: 5 * 60_000, rejectedMs: 30_000, maxProtected: 256, maxOthers: 1_024 };
/** Reviews at the same time. The process has 16 connections to the API server, which it also needs for its own work. */
const MAX_RUNNING = { known: 6, unknown: 4 };
/** Tokens of service accounts have 1 to 2 KB, those of OIDC providers more. */
const MAX_TOKEN_LENGTH = 8 * 1024;
/** RFC 6750, 2.1. */
const BEARER = /^Bearer +(?<token>[A-Za-z0-9\-._~+/]+=*)$/i;

interface ScraperAccessOptions {
  readonly client: Pick<Client, 'create'>;
  /** Tokens must be for one of them. Empty: for the API server. */
  readonly audiences: readonly string[];
  readonly clock: Clock;
  readonly log: Logger;
}

/** The answer for a request: 200, or why not. */
type AccessDecision = { readonly status: 200 } | { readonly status: 401 | 403 | 429 | 503; readonly message: string };

/**
 * Decides who may read metrics, as controller-runtime's `WithAuthenticationAndAuthorization` does: a TokenReview says who sends the token, and a
 * SubjectAccessReview whether that user may `get` the path `/metrics`. If the API server does not answer, nobody may who was not allowed shortly before.
 */
export class ScraperAccess {
  readonly #options: ScraperAccessOptions;
  readonly #known: KnownClients;
  /** Separate, so that no number of unknown clients keeps a scraper from its next scrape. */
  readonly #limits: { readonly known: ReviewLimits; readonly unknown: ReviewLimits };
  readonly #tokens: ReviewCache<UserInfo>;
  readonly #users: ReviewCache<true>;
  /** Keys of the caches are hashes with this key, so that memory contains no tokens for longer than a request. */
  readonly #hashKey = randomBytes(32);

  constructor(options: ScraperAccessOptions) {
    const { clock } = options;
    this.#options = options;
    this.#known = new KnownClients(clock);
    this.#limits = {
      known: new ReviewLimits(clock, MAX_RUNNING.known),
      unknown: new ReviewLimits(clock, MAX_RUNNING.unknown),
    };
    this.#tokens = new ReviewCache({ clock, ...TOKENS });
    this.#users = new ReviewCache({ clock, ...USERS });
  }

  /**
   * @param authorization the header of that name
   * @param address of the client, for rate limits
   */
  async decide(authorization: string | undefined, address: string): Promise<AccessDecision> {
    const token = BEARER.exec(authorization ?? '')?.groups?.token;
    if (token === undefined || token.length > MAX_TOKEN_LENGTH)
      return { status: 401, message: 'send the token of a service account: Authorization: Bearer <token>' };
    try {
      const tokenKey = this.#hash(token);
      const user = await this.#tokens.resolve(tokenKey, () =>
        this.#limited(tokenKey, address, () => this.#reviewToken(token, address)),
      );
      if (user === undefined) return { status: 401, message: 'the API server does not accept the token' };
      const userKey = this.#hash(JSON.stringify([user.username, user.uid, user.groups, user.extra]));
      const allowed = await this.#users.resolve(userKey, () =>
        this.#limited(tokenKey, address, () => this.#reviewUser(user, address)),
      );
      if (!allowed) return { status: 403, message: describeDenial(user) };
      // only now: a user without the right can have any number of valid tokens
      this.#tokens.protect(tokenKey);
      this.#users.protect(userKey);
      this.#known.add(tokenKey);
      this.#known.add(address);
      return { status: 200 };
    } catch (error) {
      return this.#explain(error);
    }
  }

  #explain(error: unknown): AccessDecision {
    if (error instanceof TooManyReviewsError) return { status: 429, message: `${error.message}: retry later` };
    this.#options.log.warn({}, `cannot find out who may read metrics: ${messageOf(error)}`);
    return { status: 503, message: 'the API server did not say whether you may read metrics: see the log' };
  }

  /** The token before the address: other clients may share a known address, for example behind the NAT of a node. */
  #limited<T>(tokenKey: string, address: string, review: () => Promise<T>): Promise<T> {
    const known = [tokenKey, address].find((client) => this.#known.has(client));
    return known === undefined ? this.#limits.unknown.run(address, review) : this.#limits.known.run(known, review);
  }

  async #reviewToken(token: string, address: string): Promise<UserInfo | undefined> {
    const { client, audiences, log } = this.#options;
    const spec = audiences.length === 0 ? { token } : { token, audiences };
    const review: TokenReview = { metadata: { name: '' }, spec };
    const { status = {} } = await client.create(TOKEN_REVIEWS, review, { deadlineMs: REVIEW_MS });
    const { authenticated, user, audiences: valid = [] } = status;
    // an authenticator that does not know audiences answers without any
    const isForUs = audiences.length === 0 || audiences.some((audience) => valid.includes(audience));
    if (authenticated === true && isForUs && user?.username) return { ...user, username: user.username };
    log.debug({ address, problem: status.error }, 'a token for metrics was rejected');
    return undefined;
  }

  async #reviewUser(user: UserInfo, address: string): Promise<true | undefined> {
    const { client, log } = this.#options;
    const { username, uid, groups, extra } = user;
    const subject = { user: username, ...(uid && { uid }), ...(groups && { groups }), ...(extra && { extra }) };
    const review: SubjectAccessReview = { metadata: { name: '' }, spec: { ...subject, nonResourceAttributes: RIGHT } };
    const { status } = await client.create(SUBJECT_ACCESS_REVIEWS, review, { deadlineMs: REVIEW_MS });
    if (status?.allowed === true && status.denied !== true) return true;
    log.warn({ address }, describeDenial(user));
    return undefined;
  }

  #hash(text: string): string {
    return createHmac('sha256', this.#hashKey).update(text).digest('base64');
  }
}

function describeDenial({ username }: UserInfo): string {
  return `user ${describeValue(username)} may not get ${RIGHT.path}: bind it to the ClusterRole holdfast-metrics-reader`;
}

/** Ten intervals of a slow scraper. */
const KNOWN_MS = 10 * 60_000;
/** Beyond this number, the least recent one is forgotten. Only users with the right to read metrics can add any. */
const MAX_KNOWN = 256;

/** Clients that read metrics a short time ago: addresses, and hashes of tokens. */
class KnownClients {
  readonly #clock: Pick<Clock, 'now'>;
  readonly #until = new Map<string, number>();

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock;
  }

  add(client: string): void {
    setMostRecent(this.#until, client, this.#clock.now() + KNOWN_MS, MAX_KNOWN);
  }

  has(client: string): boolean {
    return this.#clock.now() < (this.#until.get(client) ?? 0);
  }
}

interface ReviewCacheOptions {
  readonly clock: Pick<Clock, 'now'>;
  /** How long an answer is valid. */
  readonly acceptedMs: number;
  readonly rejectedMs: number;
  /** Beyond this number, the least recently used protected answers are dropped. */
  readonly maxProtected: number;
  /** Beyond this number, the oldest other answers are dropped. */
  readonly maxOthers: number;
}

interface Answer<T> {
  /** undefined: rejected. */
  readonly value: T | undefined;
  readonly until: number;
}

/** Remembers answers of the API server, and asks only once for what several requests want to know at the same time. */
export class ReviewCache<T> {
  readonly #options: ReviewCacheOptions;
  readonly #protected = new Map<string, Answer<T>>();
  readonly #others = new Map<string, Answer<T>>();
  readonly #running = new Map<string, Promise<T | undefined>>();

  constructor(options: ReviewCacheOptions) {
    this.#options = options;
  }

  /**
   * @param review asks the API server; undefined: rejected. An error is not remembered
   * @returns undefined if the API server rejects it
   */
  async resolve(key: string, review: () => Promise<T | undefined>): Promise<T | undefined> {
    const known = this.#protected.get(key) ?? this.#others.get(key);
    if (known !== undefined && this.#options.clock.now() < known.until) return known.value;
    const running = this.#running.get(key);
    if (running !== undefined) return running;
    const started = this.#review(key, review).finally(() => this.#running.delete(key));
    this.#running.set(key, started);
    return started;
  }

  /** Call it for each use of an answer that gave access. Any number of other answers does not displace it. */
  protect(key: string): void {
    const answer = this.#protected.get(key) ?? this.#others.get(key);
    if (answer === undefined) return;
    this.#others.delete(key);
    setMostRecent(this.#protected, key, answer, this.#options.maxProtected);
  }

  async #review(key: string, review: () => Promise<T | undefined>): Promise<T | undefined> {
    const { clock, acceptedMs, rejectedMs, maxOthers } = this.#options;
    const value = await review();
    const until = clock.now() + (value === undefined ? rejectedMs : acceptedMs);
    this.#protected.delete(key);
    setMostRecent(this.#others, key, { value, until }, maxOthers);
    return value;
  }
}

/** A review that was not sent, because its client or all clients together send too many. */
class TooManyReviewsError extends Error {
  override readonly name = 'TooManyReviewsError';
}

/** Two reviews a minute are enough for a scraper. A client that sends one invalid token after the other reaches this. */
const PER_CLIENT = { burst: 10, refillMs: 1_000, maxKeys: 1_024 };
/** All clients together, in requests to the API server. */
const IN_ALL = { burst: 40, refillMs: 100, maxKeys: 1 };
const MAX_RUNNING_PER_CLIENT = 2;

/** Bounds the reviews that a group of clients can cause: how many at the same time and how many per second, for each client and for all of them. */
class ReviewLimits {
  readonly #perClient: TokenBuckets;
  readonly #inAll: TokenBuckets;
  readonly #maxRunning: number;
  readonly #running = new Map<string, number>();
  #runningInAll = 0;

  /** @param maxRunning reviews of all clients at the same time */
  constructor(clock: Pick<Clock, 'now'>, maxRunning: number) {
    this.#maxRunning = maxRunning;
    this.#perClient = new TokenBuckets({ clock, ...PER_CLIENT });
    this.#inAll = new TokenBuckets({ clock, ...IN_ALL });
  }

  /**
   * @param client its address, or the hash of its token
   * @throws {TooManyReviewsError}; and what the review throws
   */
  async run<T>(client: string, review: () => Promise<T>): Promise<T> {
    const own = this.#running.get(client) ?? 0;
    if (own >= MAX_RUNNING_PER_CLIENT || this.#runningInAll >= this.#maxRunning)
      throw new TooManyReviewsError('too many reviews at the same time');
    // the client's own bucket first: a client that has emptied it takes nothing from the others
    if (!this.#perClient.tryTake(client) || !this.#inAll.tryTake(''))
      throw new TooManyReviewsError('too many tokens to review');
    this.#runningInAll++;
    this.#running.set(client, own + 1);
    try {
      return await review();
    } finally {
      this.#runningInAll--;
      const left = (this.#running.get(client) ?? 1) - 1;
      if (left > 0) this.#running.set(client, left);
      else this.#running.delete(client);
    }
  }
}
