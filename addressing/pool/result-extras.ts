import { describeValue, isRecord } from '../../api/json.js';
import { type Address, AddressError, formatAddress, parseAddress } from '../address/address.js';
import { type Cidr, formatCidr, parseCidr } from '../address/cidr.js';

interface CniRoute {
  readonly dst: string;
  readonly gw?: string;
  /** Added by CNI 1.1: mtu, advmss, priority, table, scope. */
  readonly [option: string]: string | number | undefined;
}

/** DNS settings. Empty ones are left out. */
interface Dns {
  readonly nameservers?: readonly string[];
  readonly domain?: string;
  readonly search?: readonly string[];
  readonly options?: readonly string[];
}

/** The settings of a network's config that go into the result of an ADD. */
export interface ResultExtras {
  readonly routes: readonly CniRoute[];
  readonly dns: Dns;
}

/** The message names the key and its value. */
export class ResultExtrasError extends TypeError {
  override readonly name = 'ResultExtrasError';

  constructor(key: string, problem: string) {
    super(`${key}: ${problem}`);
  }
}

const ROUTE_NUMBERS = ['mtu', 'advmss', 'priority', 'table', 'scope'] as const;
export const ROUTE_KEYS: readonly string[] = ['dst', 'gw', ...ROUTE_NUMBERS];
export const DNS_KEYS: readonly string[] = ['nameservers', 'domain', 'search', 'options'];

/**
 * Reads `routes` and `dns` of an `ipam` object.
 * @param path that of the object, for messages
 * @throws {ResultExtrasError}
 */
export function readResultExtras(ipam: Readonly<Record<string, unknown>>, path: string): ResultExtras {
  const routes = listOf(ipam.routes, `${path}.routes`);
  return {
    routes: routes.map((route, index) => readRoute(route, `${path}.routes[${index}]`)),
    dns: readDns(ipam.dns ?? {}, `${path}.dns`),
  };
}

function readRoute(value: unknown, path: string): CniRoute {
  if (!isRecord(value))
    throw new ResultExtrasError(path, `${describeValue(value)} is not an object like {"dst": "10.0.0.0/8"}`);
  const dst = parseString(value.dst, `${path}.dst`, parseCidr);
  const numbers = ROUTE_NUMBERS.flatMap((key) => {
    const number = value[key] ?? undefined;
    if (number === undefined) return [];
    if (typeof number === 'number' && Number.isSafeInteger(number) && number >= 0) return [[key, number] as const];
    throw new ResultExtrasError(`${path}.${key}`, `${describeValue(number)} is not a whole number`);
  });
  const route = { dst: formatCidr(dst), ...Object.fromEntries(numbers) };
  return (value.gw ?? '') === '' ? route : { ...route, gw: readNextHop(value.gw, `${path}.gw`, dst) };
}

function readNextHop(value: unknown, path: string, dst: Cidr): string {
  const gw: Address = parseString(value, path, parseAddress);
  if (gw.family === dst.family) return formatAddress(gw);
  const problem = `${describeValue(value)} is not of the same family as ${formatCidr(dst)}: correct one of them`;
  throw new ResultExtrasError(path, problem);
}

function readDns(dns: unknown, path: string): Dns {
  if (!isRecord(dns)) throw new ResultExtrasError(path, `${describeValue(dns)} is not an object`);
  const nameservers = readStrings(dns.nameservers, `${path}.nameservers`).map((text, index) =>
    formatAddress(parseString(text, `${path}.nameservers[${index}]`, parseAddress)),
  );
  const search = readStrings(dns.search, `${path}.search`);
  const options = readStrings(dns.options, `${path}.options`);
  const domain = dns.domain ?? '';
  if (typeof domain !== 'string')
    throw new ResultExtrasError(`${path}.domain`, `${describeValue(domain)} is not a string`);
  return {
    ...(nameservers.length > 0 && { nameservers }),
    ...(domain !== '' && { domain }),
    ...(search.length > 0 && { search }),
    ...(options.length > 0 && { options }),
  };
}

function readStrings(value: unknown, path: string): string[] {
  return listOf(value, path).map((element, index) => {
    if (typeof element === 'string' && element !== '') return element;
    const problem = `${describeValue(element)} is not a non-empty string: correct or remove it`;
    throw new ResultExtrasError(`${path}[${index}]`, problem);
  });
}

function listOf(value: unknown, path: string): readonly unknown[] {
  const list = value ?? [];
  if (Array.isArray(list)) return list as unknown[];
  throw new ResultExtrasError(path, `${describeValue(list)} is not a list`);
}

function parseString<T>(value: unknown, path: string, parse: (text: string) => T): T {
  if (typeof value !== 'string')
    throw new ResultExtrasError(path, `${describeValue(value)} is not a string: write it in quotes`);
  try {
    return parse(value);
  } catch (error) {
    if (!(error instanceof AddressError)) throw error;
    throw new ResultExtrasError(path, error.message);
  }
}
