import { HOLDFAST_IPAM } from '../../api/ipam-delegation.js';
import { describeValue, isRecord } from '../../api/json.js';
import { CniCode, CniError } from './cni-error.js';
import { type CniCommand } from './environment.js';
import { parseRequestJson } from './plugin-protocol.js';

/** The config on stdin: that of the plugin that delegates IPAM to Holdfast (CNI spec 1.1, section 1). */

export const SUPPORTED_VERSIONS = ['0.3.0', '0.3.1', '0.4.0', '1.0.0', '1.1.0'] as const;
export type CniVersion = (typeof SUPPORTED_VERSIONS)[number];

export type JsonObject = Record<string, unknown>;

/** A config with validated version and network. Other keys are read where they are needed. */
export interface StdinConfig {
  readonly version: CniVersion;
  /** The CNI network. */
  readonly name: string;
  readonly ipam: JsonObject;
  readonly all: JsonObject;
}

/** The CNI versions that introduced the newer commands. */
const MIN_VERSIONS: Readonly<Partial<Record<CniCommand, CniVersion>>> = {
  CHECK: '0.4.0',
  GC: '1.1.0',
  STATUS: '1.1.0',
};

const NETWORK_NAME = /^[a-zA-Z0-9][a-zA-Z0-9_.-]*$/;

/** Parses the JSON text. @throws {CniError} 6 */
export function parseConfig(text: string): JsonObject {
  const config = parseRequestJson(text, 'the network config on stdin');
  if (isRecord(config)) return config;
  throw new CniError(CniCode.Decode, `the network config on stdin is ${describeValue(config)}, not an object`);
}

/** Reads and validates the config. @throws {CniError} 1, or 7 naming the key */
export function readStdinConfig(command: CniCommand, text: string): StdinConfig {
  const all = parseConfig(text);
  const version = readVersion(command, all.cniVersion);
  const { name, ipam } = all;
  if (typeof name !== 'string' || !NETWORK_NAME.test(name)) {
    throw invalidConfig(
      'name',
      `${describeValue(name)} is not a valid network name: use letters, digits, "_", "." and "-", and begin with a letter or digit`,
    );
  }
  const type = isRecord(ipam) ? ipam.type : undefined;
  if (!isRecord(ipam) || type !== HOLDFAST_IPAM) {
    const problem = `${describeValue(type)} is not "${HOLDFAST_IPAM}": this plugin serves only that type`;
    throw invalidConfig('ipam.type', problem);
  }
  return { version, name, ipam, all };
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

function readVersion(command: CniCommand, given: unknown): CniVersion {
  const version = SUPPORTED_VERSIONS.find((each) => each === given);
  if (version === undefined) {
    // the default of the CNI spec
    const shown = given === undefined || given === '' ? 'absent, which means "0.1.0"' : describeValue(given);
    throw new CniError(
      CniCode.IncompatibleVersion,
      `cniVersion is ${shown}: set it to one of ${SUPPORTED_VERSIONS.join(', ')} in the network's config`,
    );
  }
  const since = MIN_VERSIONS[command];
  if (since === undefined || SUPPORTED_VERSIONS.indexOf(version) >= SUPPORTED_VERSIONS.indexOf(since)) return version;
  throw new CniError(CniCode.IncompatibleVersion, `cniVersion is "${version}": ${command} needs ${since} or newer`);
}
