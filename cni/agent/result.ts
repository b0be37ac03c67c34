import type { CniVersion } from '../../api/networks/cni-version.js';
import { isRecord } from '../../api/json.js';
import { type Address, BITS, formatAddress } from '../../addressing/address/address.js';
import { parseCidr } from '../../addressing/address/cidr.js';
import type { LeaseRecord } from '../../addressing/lease/lease.js';
import { type Pool, subnetOf } from '../../addressing/pool/pool.js';
import type { ResultExtras } from '../../addressing/pool/result-extras.js';
import type { CniError } from './cni-error.js';
import type { PortRules } from './guard/port-guard.js';

/** The answer of the agent: a CNI result or a CNI error, as the plugin writes it to stdout. */

/** One address of an attachment. */
interface GrantedAddress {
  readonly address: Address;
  /** Prefix length of the subnet. */
  readonly prefixLength: number;
  readonly gateway?: Address;
  /** The lease by which the attachment has it. */
  readonly lease: LeaseRecord;
}

/** All addresses of an attachment: one for each family of the pool, IPv4 first. */
export type Grant = readonly GrantedAddress[];

/**
 * Adds prefix length and gateway to the address of a lease.
 * @param pool that of the lease, if known
 * @param prefixLength counts if the pool does not have the address
 */
export function grantedAddress(
  lease: LeaseRecord,
  pool: Pool | undefined,
  prefixLength: number = BITS[lease.address.family],
): GrantedAddress {
  const { address } = lease;
  const subnet = pool && subnetOf(pool, address);
  if (subnet === undefined) return { address, prefixLength, lease };
  const { cidr, gateway } = subnet;
  return { address, prefixLength: cidr.prefixLength, ...(gateway !== undefined && { gateway }), lease };
}

/**
 * Builds the abbreviated result of an IPAM plugin (CNI spec 1.1, section 5.1.3), without interfaces: those belong to the calling plugin.
 * Routes of a family without an address are left out: the kernel refuses them, and the calling plugin would fail. A claim keeps its families when its
 * NAD gets another one.
 */
export function addResult(version: CniVersion, grant: Grant, { routes, dns }: ResultExtras): object {
  const namesFamilies = version.startsWith('0.');
  const ips = grant.map(({ address, prefixLength, gateway }) => ({
    ...(namesFamilies && { version: String(address.family) }),
    address: `${formatAddress(address)}/${prefixLength}`,
    ...(gateway !== undefined && { gateway: formatAddress(gateway) }),
  }));
  const usable = routes.filter(({ dst }) => grant.some(({ address }) => address.family === parseCidr(dst).family));
  return { cniVersion: version, ips, ...(usable.length > 0 && { routes: usable }), dns };
}

/** The exit code and output of the plugin. */
export interface PluginResponse {
  readonly exit: 0 | 1;
  /** Text for stdout. */
  readonly output: string;
  /** The rules that the plugin must apply first. */
  readonly guard?: PortRules;
}

/** The version of answers to requests that name none. */
const NEWEST_VERSION = '1.1.0';
/** A longer text is no version. */
const MAX_VERSION_LENGTH = 64;

/** What a verb returns. */
export interface VerbOutcome {
  /** Absent if the verb has none. */
  readonly result?: object;
  /** Of an ADD whose pool has a guard. */
  readonly guard?: PortRules;
}

/** Builds the response of a verb. */
export function success({ result, guard }: VerbOutcome = {}): PluginResponse {
  const output = result === undefined ? '' : JSON.stringify(result);
  return { exit: 0, output, ...(guard !== undefined && { guard }) };
}

/** Builds the response for an error, in the CNI version of the config on stdin if that could be read. */
export function failure({ code, message, details }: CniError, cniVersion = NEWEST_VERSION): PluginResponse {
  const error = { cniVersion, code, msg: message, ...(details !== undefined && { details }) };
  return { exit: 1, output: JSON.stringify(error) };
}

/** Returns the version in which an error answers a config; the newest if it names none. */
export function answerVersionOf(text: string): string {
  try {
    const config: unknown = JSON.parse(text);
    const version = isRecord(config) ? config.cniVersion : undefined;
    const isKept = typeof version === 'string' && version !== '' && version.length <= MAX_VERSION_LENGTH;
    return isKept ? version : NEWEST_VERSION;
  } catch {
    return NEWEST_VERSION;
  }
}
