import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { describeValue } from '../../api/json.js';

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

/** Why a request is not answered. */
interface RequestRefusal {
  readonly status: 403 | 405;
  readonly message: string;
}

/** A request as far as the checks read it. */
interface CheckedRequest {
  readonly method: string;
  readonly headers: IncomingHttpHeaders;
  /** It opens the page with a token: links in terminals and files lead there, so that it may come from another site. */
  readonly isEntrance: boolean;
}

/**
 * Checks what a request says about its origin. Pages of other sites cannot change these headers.
 * @param port of this server
 * @returns undefined if the request may be answered
 */
export function refusalOf({ method, headers, isEntrance }: CheckedRequest, port: number): RequestRefusal | undefined {
  if (method !== 'GET' && method !== 'HEAD') return { status: 405, message: 'this server only answers GET and HEAD' };
  const { host = '', origin } = headers;
  // a name that an attacker lets point to 127.0.0.1 (DNS rebinding) is the name of another host
  if (host !== `127.0.0.1:${port}` && host !== `localhost:${port}`) {
    return forbidden(`the host ${describeValue(host)} is not this server: open http://127.0.0.1:${port}`);
  }
  if (origin !== undefined && origin !== `http://${host}`) {
    return forbidden(`the request comes from a page of ${describeValue(origin)}`);
  }
  return isFromOwnPage(headers) || (isEntrance && isOpenedByLink(headers))
    ? undefined
    : forbidden('the request comes from a page of another site');
}

/** `same-site` is not enough: it includes servers of other users on other ports of this machine. */
function isFromOwnPage({ 'sec-fetch-site': site }: IncomingHttpHeaders): boolean {
  return site === undefined || site === 'same-origin' || site === 'none';
}

function isOpenedByLink(headers: IncomingHttpHeaders): boolean {
  return headers['sec-fetch-mode'] === 'navigate' && headers['sec-fetch-dest'] === 'document';
}

function forbidden(message: string): RequestRefusal {
  return { status: 403, message };
}
