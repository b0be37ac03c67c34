import {
  type CniVersion,
  SUPPORTED_VERSIONS,
  describeVersionProblem,
  isSupportedVersion,
} from '../../api/networks/cni-version.js';
import { HOLDFAST_IPAM, pluginFingerprint } from '../../api/networks/ipam-delegation.js';
import { NETWORK_NAME_REMEDY, isNetworkName } from '../../api/networks/network-attachment.js';
import { asRecord, describeValue, isRecord } from '../../api/json.js';
import { parseLeaseMac, parseMac } from '../../api/mac-address.js';
import { type Address, formatFamily, parseAddressOrPrefix, sameAddress } from '../../addressing/address/address.js';
import { type Range, RangeSet } from '../../addressing/address/ranges.js';
import { type ResultExtras, ResultExtrasError, readResultExtras } from '../../addressing/pool/result-extras.js';
import { messageOf } from '../../kube/errors.js';
import { CniCode, CniError } from './cni-error.js';

/** The config on stdin: that of the plugin that delegates IPAM to Holdfast, or of Holdfast as a chained plugin (CNI spec 1.1, section 1). */

export type JsonObject = Record<string, unknown>;

/** A config with validated version and network. Other keys are read where they are needed. */
interface StdinConfig {
  readonly version: CniVersion;
  /** The CNI network. */
  readonly name: string;
  /** Empty for a chained plugin. */
  readonly ipam: JsonObject;
  /** It runs after the plugin that has created the interface, and only guards it. */
  readonly isChained: boolean;
  readonly all: JsonObject;
}

/** The CNI version that introduced each command that needs a valid config. */
const MIN_VERSIONS = { ADD: '0.3.0', CHECK: '0.4.0', GC: '1.1.0', STATUS: '1.1.0' } as const;
type ConfiguredCommand = keyof typeof MIN_VERSIONS;

const NO_VLAN = 0n;
const LAST_VLAN = 4094n;
/** The VLAN of untagged frames that the plugin gives to the port of a trunk without `vlan`. */
const DEFAULT_VLAN = { first: 1n, last: 1n };

/** The part of an ADD that its config determines. */
export interface AddConfig {
  readonly version: CniVersion;
  /** The CNI network: `name` in the config. */
  readonly network: string;
  /** Addresses requested by `runtimeConfig.ips`, `args.cni.ips` or CNI_ARGS; at most one per family. */
  readonly requested: readonly Address[];
  /** Lower case, with colons. */
  readonly mac: string | undefined;
  /** Fingerprint of the config, compared with that of the NAD; undefined if the config is nested too deeply. */
  readonly fingerprint: string | undefined;
  readonly extras: ResultExtras;
  /** Of which the plugin passes tagged frames. */
  readonly vlans: readonly Range[];
  /** Of a chained plugin: the result of the plugins before it, as JSON. A tenant can write one whose parsed form is many times as big. */
  readonly prevResult?: string;
}

/** Parses the JSON text. @throws {CniError} 6 */
export function parseConfig(text: string): JsonObject {
  const config = parseRequestJson(text, 'the network config on stdin');
  if (isRecord(config)) return config;
  throw new CniError(CniCode.Decode, `the network config on stdin is ${describeValue(config)}, not an object`);
}

/** Reads and validates the config. @throws {CniError} 1, or 7 naming the key */
export function readStdinConfig(command: ConfiguredCommand, text: string): StdinConfig {
  const all = parseConfig(text);
  const version = readVersion(command, all.cniVersion);
  const { name, ipam } = all;
  if (typeof name !== 'string' || !isNetworkName(name)) {
    throw invalidConfig('name', `${describeValue(name)} is not a valid network name: ${NETWORK_NAME_REMEDY}`);
  }
  const type = isRecord(ipam) ? ipam.type : undefined;
  if (type === undefined && all.type === HOLDFAST_IPAM) return { version, name, ipam: {}, isChained: true, all };
  if (!isRecord(ipam) || type !== HOLDFAST_IPAM) {
    const problem = `${describeValue(type)} is not "${HOLDFAST_IPAM}": this plugin serves only that type`;
    throw invalidConfig('ipam.type', problem);
  }
  return { version, name, ipam, isChained: false, all };
}

/** Reads the config of an ADD. @param args those of CNI_ARGS @throws {CniError} 1, 4 or 7 */
export function readAddConfig(text: string, args: ReadonlyMap<string, string>): AddConfig {
  const { version, name, ipam, isChained, all } = readStdinConfig('ADD', text);
  return {
    version,
    network: name,
    requested: runtimeAddresses(all, args),
    mac: requestedMac(all, args),
    fingerprint: pluginFingerprint(all),
    extras: resultExtrasOf(ipam),
    vlans: isChained ? [] : trunkVlans(all),
    ...(isChained && { prevResult: readPrevResult(all) }),
  };
}

/** @throws {CniError} 7, naming key and value */
function resultExtrasOf(ipam: JsonObject): ResultExtras {
  try {
    return readResultExtras(ipam, 'ipam');
  } catch (error) {
    if (!(error instanceof ResultExtrasError)) throw error;
    throw new CniError(CniCode.InvalidConfig, error.message, { cause: error });
  }
}

/** Returns the result of the plugins before a chained one. @throws {CniError} 7 */
function readPrevResult({ prevResult }: JsonObject): string {
  if (isRecord(prevResult)) return JSON.stringify(prevResult);
  const problem = `it is ${describeValue(prevResult)}: write {"type": "${HOLDFAST_IPAM}"} after the plugin that creates the interface`;
  throw invalidConfig('prevResult', problem);
}

/** Builds the error for a key of the config. */
export function invalidConfig(key: string, problem: string): CniError {
  return new CniError(CniCode.InvalidConfig, `${key}: ${problem}`);
}

/** Returns the object of a key, empty if the key is absent. @throws {CniError} 7 */
export function objectAt(parent: JsonObject, key: string, path = key): JsonObject {
  const value = parent[key] ?? {};
  if (isRecord(value)) return value;
  throw invalidConfig(path, `${describeValue(value)} is not an object`);
}

/** Returns the list of a key, empty if the key is absent. @throws {CniError} 7 */
export function listAt(parent: JsonObject, key: string, path = key): unknown[] {
  const value = parent[key] ?? [];
  if (Array.isArray(value)) return value;
  throw invalidConfig(path, `${describeValue(value)} is not a list`);
}

function readVersion(command: ConfiguredCommand, given: unknown): CniVersion {
  if (!isSupportedVersion(given)) throw new CniError(CniCode.IncompatibleVersion, describeVersionProblem(given));
  const since = MIN_VERSIONS[command];
  if (SUPPORTED_VERSIONS.indexOf(given) >= SUPPORTED_VERSIONS.indexOf(since)) return given;
  throw new CniError(CniCode.IncompatibleVersion, `cniVersion is "${given}": ${command} needs ${since} or newer`);
}

/**
 * @param what begins the message
 * @throws {CniError} 6
 */
export function parseRequestJson(text: string, what: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new CniError(CniCode.Decode, `${what} is not JSON: ${(error as SyntaxError).message}`);
  }
}

/** Builds the error for an invalid value. */
type CreateError = (path: string, problem: string) => CniError;

/**
 * Returns the requested addresses: the first that is set of `runtimeConfig.ips`, `args.cni.ips` and IP in CNI_ARGS.
 * @returns at most one per family, IPv4 first
 * @throws {CniError} 7, or 4 for CNI_ARGS; both name key and value
 */
function runtimeAddresses(config: JsonObject, args: ReadonlyMap<string, string>): Address[] {
  const given = listAt(objectAt(config, 'runtimeConfig'), 'ips', 'runtimeConfig.ips');
  if (given.length > 0) return parseRequestedAddresses(given, 'runtimeConfig.ips', invalidConfig);
  const cni = objectAt(objectAt(config, 'args'), 'cni', 'args.cni');
  const older = listAt(cni, 'ips', 'args.cni.ips');
  if (older.length > 0) return parseRequestedAddresses(older, 'args.cni.ips', invalidConfig);
  return parseRequestedAddresses(args.get('IP')?.split(',') ?? [], 'CNI_ARGS: IP', invalidVariable);
}

/** Returns `runtimeConfig.mac`, else MAC in CNI_ARGS, in lower case with colons. @throws {CniError} as {@link runtimeAddresses} */
function requestedMac(config: JsonObject, args: ReadonlyMap<string, string>): string | undefined {
  const given = objectAt(config, 'runtimeConfig').mac || undefined;
  if (given !== undefined) return readMac(given, 'runtimeConfig.mac', invalidConfig);
  const older = args.get('MAC');
  return older === undefined ? undefined : readMac(older, 'CNI_ARGS: MAC', invalidVariable);
}

function parseRequestedAddresses(values: readonly unknown[], path: string, complain: CreateError): Address[] {
  const found: Address[] = [];
  for (const [index, value] of values.entries()) {
    const place = `${path}[${index}]`;
    const address = readAddress(value, place, complain);
    const other = found.find(({ family }) => family === address.family);
    if (other === undefined) {
      found.push(address);
    } else if (!sameAddress(other, address)) {
      const family = formatFamily(address.family);
      throw complain(place, `${describeValue(value)} is a second ${family} address: request at most one per family`);
    }
  }
  return found.sort((a, b) => a.family - b.family);
}

function readAddress(value: unknown, place: string, complain: CreateError): Address {
  if (typeof value !== 'string')
    throw complain(place, `${describeValue(value)} is not a string: write the address in quotes`);
  try {
    return parseAddressOrPrefix(value).address;
  } catch (error) {
    throw complain(place, messageOf(error));
  }
}

/** Multus passes each form on that Go's net.ParseMAC accepts, for instance 0200.0000.0001. */
function readMac(value: unknown, place: string, complain: CreateError): string {
  const mac = typeof value === 'string' ? (parseMac(value) ?? parseLeaseMac(value)) : undefined;
  if (mac !== undefined) return mac;
  throw complain(place, `${describeValue(value)} is not a MAC address: write it like 02:00:00:00:00:01`);
}

function invalidVariable(path: string, problem: string): CniError {
  return new CniError(CniCode.InvalidEnvironment, `${path}: ${problem}`);
}

/**
 * Returns the VLANs of which the plugin `bridge` passes tagged frames. A tag of VLAN 0 or of the port's own VLAN would lead into the untagged network,
 * past the rules. Entries that the plugin refuses are left out.
 */
export function trunkVlans({ vlanTrunk, vlan }: Readonly<Record<string, unknown>>): readonly Range[] {
  const entries: readonly unknown[] = Array.isArray(vlanTrunk) ? vlanTrunk : [];
  const listed = entries.flatMap((entry) => {
    const { id, minID, maxID } = asRecord(entry);
    return [rangeOf(id, id), rangeOf(minID, maxID)].filter((each) => each !== undefined);
  });
  const native = rangeOf(vlan, vlan) ?? DEFAULT_VLAN;
  return RangeSet.of(listed).subtract(RangeSet.of([native])).ranges;
}

function rangeOf(from: unknown, to: unknown): Range | undefined {
  if (!Number.isSafeInteger(from) || !Number.isSafeInteger(to)) return undefined;
  const [first, last] = [BigInt(from as number), BigInt(to as number)];
  return first > NO_VLAN && first <= last && last <= LAST_VLAN ? { first, last } : undefined;
}
