import { describeValue, isRecord } from '../../api/json.js';
import { formatAddress, parseAddress } from '../../addressing/address/address.js';
import { formatCidr, parseCidr } from '../../addressing/address/cidr.js';
import { messageOf } from '../../kube/errors.js';
import type { Grant } from './attachment.js';
import { type CniVersion, type JsonObject, invalidConfig, listAt, objectAt } from './stdin-config.js';

/** The abbreviated result of an IPAM plugin (CNI spec 1.1, section 5.1.3), without interfaces: those belong to the calling plugin. */

export interface CniRoute {
  readonly dst: string;
  readonly gw?: string;
  /** Added by CNI 1.1: mtu, advmss, priority, table, scope. */
  readonly [option: string]: string | number | undefined;
}

/** DNS settings. Empty ones are left out. */
export interface Dns {
  readonly nameservers?: readonly string[];
  readonly domain?: string;
  readonly search?: readonly string[];
  readonly options?: readonly string[];
}

/** The settings of a network's config that go into the result. */
export interface ResultExtras {
  readonly routes: readonly CniRoute[];
  readonly dns: Dns;
}

const ROUTE_NUMBERS = ['mtu', 'advmss', 'priority', 'table', 'scope'] as const;

/** Reads `ipam.routes` and `ipam.dns`. @throws {CniError} 7, naming key and value */
export function readResultExtras(ipam: JsonObject): ResultExtras {
  const routes = listAt(ipam, 'routes', 'ipam.routes').map((route, index) => readRoute(route, `ipam.routes[${index}]`));
  return { routes, dns: readDns(objectAt(ipam, 'dns', 'ipam.dns')) };
}

export function addResult(version: CniVersion, grant: Grant, { routes, dns }: ResultExtras): object {
  const namesFamilies = version.startsWith('0.');
  const ips = grant.map(({ address, prefixLength, gateway }) => ({
    ...(namesFamilies && { version: String(address.family) }),
    address: `${formatAddress(address)}/${prefixLength}`,
    ...(gateway !== undefined && { gateway: formatAddress(gateway) }),
  }));
  return { cniVersion: version, ips, ...(routes.length > 0 && { routes }), dns };
}

function readRoute(value: unknown, path: string): CniRoute {
  if (!isRecord(value))
    throw invalidConfig(path, `${describeValue(value)} is not an object like {"dst": "10.0.0.0/8"}`);
  const dst = parseString(value.dst, `${path}.dst`, parseCidr);
  const numbers = ROUTE_NUMBERS.flatMap((key) => {
    const number = value[key] ?? undefined;
    if (number === undefined) return [];
    if (typeof number === 'number' && Number.isSafeInteger(number) && number >= 0) return [[key, number] as const];
    throw invalidConfig(`${path}.${key}`, `${describeValue(number)} is not a whole number`);
  });
  const route = { dst: formatCidr(dst), ...Object.fromEntries(numbers) };
  if ((value.gw ?? '') === '') return route;
  const gw = parseString(value.gw, `${path}.gw`, parseAddress);
  if (gw.family !== dst.family) {
    throw invalidConfig(
      `${path}.gw`,
      `${describeValue(value.gw)} is not of the same family as ${formatCidr(dst)}: correct one of them`,
    );
  }
  return { ...route, gw: formatAddress(gw) };
}

function readDns(dns: JsonObject): Dns {
  const nameservers = readStrings(dns, 'nameservers').map((text, index) =>
    formatAddress(parseString(text, `ipam.dns.nameservers[${index}]`, parseAddress)),
  );
  const [search, options] = [readStrings(dns, 'search'), readStrings(dns, 'options')];
  const domain = dns.domain ?? '';
  if (typeof domain !== 'string') throw invalidConfig('ipam.dns.domain', `${describeValue(domain)} is not a string`);
  return {
    ...(nameservers.length > 0 && { nameservers }),
    ...(domain !== '' && { domain }),
    ...(search.length > 0 && { search }),
    ...(options.length > 0 && { options }),
  };
}

function readStrings(dns: JsonObject, key: string): string[] {
  const path = `ipam.dns.${key}`;
  return listAt(dns, key, path).map((value, index) => {
    if (typeof value === 'string' && value !== '') return value;
    throw invalidConfig(`${path}[${index}]`, `${describeValue(value)} is not a non-empty string: correct or remove it`);
  });
}

function parseString<T>(value: unknown, path: string, parse: (text: string) => T): T {
  if (typeof value !== 'string')
    throw invalidConfig(path, `${describeValue(value)} is not a string: write it in quotes`);
  try {
    return parse(value);
  } catch (error) {
    throw invalidConfig(path, messageOf(error));
  }
}
