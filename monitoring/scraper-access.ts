import { createHmac, randomBytes } from 'node:crypto';
import {
  SUBJECT_ACCESS_REVIEWS,
  type SubjectAccessReview,
  TOKEN_REVIEWS,
  type TokenReview,
  type UserInfo,
} from '../kube/resources.js';
import { describeValue } from '../api/json.js';
import type { Client } from '../kube/client.js';
import type { Clock } from '../kube/clock.js';
import { messageOf } from '../kube/errors.js';
import type { Logger } from '../kube/log.js';
import { ReviewCache } from './review-cache.js';
import { ReviewLimits, TooManyReviewsError } from './review-limits.js';
import { setMostRecent } from '../kube/cache.js';

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

export interface ScraperAccessOptions {
  readonly client: Pick<Client, 'create'>;
  /** Tokens must be for one of them. Empty: for the API server. */
  readonly audiences: readonly string[];
  readonly clock: Clock;
  readonly log: Logger;
}

/** The answer for a request: 200, or why not. */
export type AccessDecision =
  { readonly status: 200 } | { readonly status: 401 | 403 | 429 | 503; readonly message: string };

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
