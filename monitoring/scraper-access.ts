import { createHmac, randomBytes } from 'node:crypto';
import type { SubjectAccessReview, TokenReview, UserInfo } from '../api/access-review.js';
import { describeValue } from '../api/json.js';
import type { Client } from '../kube/client.js';
import type { Clock } from '../kube/clock.js';
import { messageOf } from '../kube/errors.js';
import type { Logger } from '../kube/log.js';
import { SUBJECT_ACCESS_REVIEWS, TOKEN_REVIEWS } from '../kube/resources.js';
import { ReviewCache } from './review-cache.js';
import { ReviewLimits, TooManyReviewsError } from './review-limits.js';

/** What a scraper must be allowed to do: RBAC's nonResourceURLs and verb. */
const RIGHT = { path: '/metrics', verb: 'get' } as const;
/** Less than the time that Prometheus waits for a scrape, 10 s. */
const REVIEW_MS = 4_000;
/** The same times as controller-runtime's. */
const TOKENS = { acceptedMs: 60_000, rejectedMs: 60_000, maxAccepted: 256, maxRejected: 1_024 };
const USERS = { acceptedMs: 5 * 60_000, rejectedMs: 30_000, maxAccepted: 256, maxRejected: 1_024 };
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
  readonly #limits: ReviewLimits;
  readonly #tokens: ReviewCache<UserInfo>;
  readonly #users: ReviewCache<true>;
  /** Keys of the caches are hashes with this key, so that memory contains no tokens for longer than a request. */
  readonly #hashKey = randomBytes(32);

  constructor(options: ScraperAccessOptions) {
    const { clock } = options;
    this.#options = options;
    this.#limits = new ReviewLimits(clock);
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
      const user = await this.#tokens.resolve(this.#hash(token), () => this.#reviewToken(token, address));
      if (user === undefined) return { status: 401, message: 'the API server does not accept the token' };
      const identity = this.#hash(JSON.stringify([user.username, user.uid, user.groups, user.extra]));
      const allowed = await this.#users.resolve(identity, () => this.#reviewUser(user, address));
      return allowed ? { status: 200 } : { status: 403, message: describeDenial(user) };
    } catch (error) {
      return this.#explain(error);
    }
  }

  #explain(error: unknown): AccessDecision {
    if (error instanceof TooManyReviewsError) return { status: 429, message: `${error.message}: retry later` };
    this.#options.log.warn({}, `cannot find out who may read metrics: ${messageOf(error)}`);
    return { status: 503, message: 'the API server did not say whether you may read metrics: see the log' };
  }

  #reviewToken(token: string, address: string): Promise<UserInfo | undefined> {
    const { client, audiences, log } = this.#options;
    return this.#limits.run(address, async () => {
      const spec = audiences.length === 0 ? { token } : { token, audiences };
      const review: TokenReview = { metadata: { name: '' }, spec };
      const { status = {} } = await client.create(TOKEN_REVIEWS, review, { deadlineMs: REVIEW_MS });
      const { authenticated, user, audiences: valid = [] } = status;
      // an authenticator that does not know audiences answers without any
      const isForUs = audiences.length === 0 || audiences.some((audience) => valid.includes(audience));
      if (authenticated === true && isForUs && user?.username) return { ...user, username: user.username };
      log.debug({ address, problem: status.error }, 'a token for metrics was rejected');
      return undefined;
    });
  }

  #reviewUser(user: UserInfo, address: string): Promise<true | undefined> {
    const { client, log } = this.#options;
    return this.#limits.run(address, async () => {
      const { username, uid, groups, extra } = user;
      const subject = { user: username, ...(uid && { uid }), ...(groups && { groups }), ...(extra && { extra }) };
      const review: SubjectAccessReview = {
        metadata: { name: '' },
        spec: { ...subject, nonResourceAttributes: RIGHT },
      };
      const { status } = await client.create(SUBJECT_ACCESS_REVIEWS, review, { deadlineMs: REVIEW_MS });
      if (status?.allowed === true && status.denied !== true) return true;
      log.warn({ address }, describeDenial(user));
      return undefined;
    });
  }

  #hash(text: string): string {
    return createHmac('sha256', this.#hashKey).update(text).digest('base64');
  }
}

function describeDenial({ username }: UserInfo): string {
  return `user ${describeValue(username)} may not get ${RIGHT.path}: bind it to the ClusterRole holdfast-metrics-reader`;
}
