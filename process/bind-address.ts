import { isIPv6 } from 'node:net';

/** An address to listen on. No host: all addresses. Port 0: any free port. */
export interface BindAddress {
  readonly host: string | undefined;
  readonly port: number;
}

const FORM = /^(?:\[(?<ipv6>[^\]]+)\]|(?<host>[^:[\]]*)):(?<port>\d{1,5})$/;
const HINT = 'must be host:port, :port, [IPv6]:port, or 0 to disable';

/**
 * Reads `127.0.0.1:8081`, `:8081` or `[::1]:8081`.
 * @returns undefined for `0`: do not listen
 * @throws {TypeError} with the allowed forms
 */
export function parseBindAddress(text: string): BindAddress | undefined {
  if (text === '0') return undefined;
  const groups = FORM.exec(text)?.groups;
  if (groups === undefined) throw new TypeError(HINT);
  const port = Number(groups.port);
  if (port > 65_535) throw new TypeError(`${HINT}; a port is at most 65535`);
  if (groups.ipv6 !== undefined && !isIPv6(groups.ipv6)) throw new TypeError(HINT);
  return { host: groups.ipv6 ?? (groups.host === '' ? undefined : groups.host), port };
}
