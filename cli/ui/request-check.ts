import type { IncomingHttpHeaders } from 'node:http';
import { describeValue } from '../../api/json.js';

/** Why a request is not answered. */
export interface RequestRefusal {
  readonly status: 403 | 405;
  readonly message: string;
}

/** A request as far as the checks read it. */
export interface CheckedRequest {
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
