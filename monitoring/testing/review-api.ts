import type { SubjectAccessReview, TokenReview, UserInfo } from '../../kube/resources.js';
import { Client } from '../../kube/client.js';
import type { ApiRequest, ClientTransport } from '../../kube/transport/transport.js';

/** An API server that knows tokens and rights, and nothing else. */
export class ReviewApi implements ClientTransport {
  /** The user of each token, and the audiences for which it is valid. */
  readonly tokens = new Map<string, { user: UserInfo; audiences: string[] }>();
  /** Users who may get /metrics. */
  readonly readers = new Set<string>();
  readonly tokenReviews: TokenReview[] = [];
  readonly accessReviews: SubjectAccessReview[] = [];
  /** Awaited before each review. It may throw. */
  before: () => Promise<void> | void = () => undefined;
  readonly client = new Client(this);

  add(token: string, username: string, audiences: string[] = []): void {
    const user = { username, uid: `uid-of-${username}`, groups: ['system:authenticated'], extra: { a: ['b'] } };
    this.tokens.set(token, { user, audiences });
  }

  async request({ path, body }: ApiRequest): Promise<unknown> {
    if (path === '/apis/authentication.k8s.io/v1/tokenreviews') {
      this.tokenReviews.push(body as TokenReview);
      await this.before();
      return { ...(body as TokenReview), status: this.#statusOf((body as TokenReview).spec) };
    }
    if (path === '/apis/authorization.k8s.io/v1/subjectaccessreviews') {
      this.accessReviews.push(body as SubjectAccessReview);
      await this.before();
      const { spec } = body as SubjectAccessReview;
      return { ...(body as SubjectAccessReview), status: { allowed: this.readers.has(spec.user) } };
    }
    throw new TypeError(`the review API does not know ${path}`);
  }

  stream(): never {
    throw new TypeError('the review API has no watches');
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  #statusOf({ token }: TokenReview['spec']): TokenReview['status'] {
    const found = this.tokens.get(token);
    if (found === undefined) return { authenticated: false, error: 'invalid bearer token' };
    return { authenticated: true, ...found };
  }
}
