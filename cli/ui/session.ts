import { createHash, timingSafeEqual } from 'node:crypto';

/** Returns that many random bytes. */
export type RandomBytes = (size: number) => Buffer;

const SECRET_BYTES = 32;
/** One for each token that a user asked for. */
const MAX_SESSIONS = 16;

/**
 * Who may read the pages. A token in a URL is exchanged once for a session: a cookie, and a secret path for which alone the browser sends it.
 * Browsers send cookies to every port of a host, so that without the path, a server of another local user could receive the cookie.
 */
export class Sessions {
  readonly #random: RandomBytes;
  /** Path → digest of the cookie. */
  readonly #sessions = new Map<string, Buffer>();
  #token: Buffer | undefined;

  constructor(random: RandomBytes) {
    this.#random = random;
  }

  /** Returns a new token. The one before is no longer valid. */
  issueToken(): string {
    const token = this.#secret();
    this.#token = digestOf(token);
    return token;
  }

  /** Exchanges a token. @returns undefined if it is not the current one, or was used */
  open(token: string): { path: string; cookie: string } | undefined {
    if (this.#token === undefined || !timingSafeEqual(this.#token, digestOf(token))) return undefined;
    this.#token = undefined;
    const session = { path: this.#secret(), cookie: this.#secret() };
    this.#sessions.set(session.path, digestOf(session.cookie));
    const [oldest] = this.#sessions.keys();
    if (this.#sessions.size > MAX_SESSIONS && oldest !== undefined) this.#sessions.delete(oldest);
    return session;
  }

  isOpen(path: string, cookie: string): boolean {
    const digest = this.#sessions.get(path);
    return digest !== undefined && timingSafeEqual(digest, digestOf(cookie));
  }

  #secret(): string {
    return this.#random(SECRET_BYTES).toString('base64url');
  }
}

function digestOf(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
