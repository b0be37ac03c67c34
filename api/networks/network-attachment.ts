import { MAX_NAD_CONFIG_LENGTH, MAX_NAD_PLUGINS, MAX_SUBNETS_LENGTH } from '../limits.js';
import { describeValue, isRecord } from '../json.js';
import type { KubeObject } from '../meta.js';

/** NetworkAttachmentDefinition, k8s.cni.cncf.io/v1 (multi-net-spec §3). */
export interface NetworkAttachmentDefinition extends KubeObject {
  spec?: { config?: string };
}

const FLAG = 'allowPersistentIPs';
const MAX_EDITS = 2;
const MAX_MISSPELLED = 4;

/** What Holdfast reads in a CNI network config. */
export interface CniNetwork {
  /** The network's name: several NADs may share it. */
  name: string;
  allowPersistentIPs: boolean;
  /** The config says `false`: somebody wants addresses that do not persist. */
  deniesPersistentIPs?: true;
  /** Paths of keys that nobody reads, and that are nearly `allowPersistentIPs`. At most 4. */
  misspelledFlags?: string[];
  /** Present if the network is the primary user-defined network of its namespace (OVN-Kubernetes). */
  primary?: PrimaryNetworkConfig;
}

interface PrimaryNetworkConfig {
  /** A comma-separated list of CIDRs, as in the config. */
  subnets: string;
}

/** CNI spec, section 1. */
const NETWORK_NAME = /^[a-zA-Z0-9][a-zA-Z0-9_.-]*$/;
/** Follows `"a/b" is not a valid name`. */
export const NETWORK_NAME_REMEDY = 'use letters, digits, "_", "." and "-", and begin with a letter or digit';

export function isNetworkName(text: string): boolean {
  return NETWORK_NAME.test(text);
}

/** A config that cannot be used; `field` is a path in the NAD, and the message says what to do. */
export interface NetworkConfigProblem {
  field: string;
  message: string;
}

interface InvalidNetworkConfig {
  ok: false;
  problem: NetworkConfigProblem;
}

export type NetworkConfig = { ok: true; network: CniNetwork } | InvalidNetworkConfig;

/**
 * Reads `spec.config` of a NAD: a CNI config or config list. `allowPersistentIPs` counts at the top level and in any plugin of a list.
 * A config without a name gets the NAD's name, as in Multus. A NAD without a config allows no persistent addresses, because Multus then uses
 * a file on the node (multi-net-spec §3), which Holdfast cannot read. Never throws.
 */
export function parseNetworkConfig(nad: NetworkAttachmentDefinition): NetworkConfig {
  const { name } = nad.metadata;
  const config = readCniConfig(nad);
  if (!config.ok) return config;
  if (config.value === undefined) return { ok: true, network: { name, allowPersistentIPs: false } };
  return readNetwork(config.value, name);
}

/**
 * Parses `spec.config` of a NAD; without a value if the config is a file on the nodes. A config over the limits is not parsed but invalid,
 * so that no IPAM is assumed for it.
 */
export function readCniConfig(
  nad: NetworkAttachmentDefinition,
): { ok: true; value: Record<string, unknown> | undefined } | InvalidNetworkConfig {
  const text: unknown = nad.spec?.config ?? '';
  if (typeof text === 'string' && text.trim() === '') return { ok: true, value: undefined };
  if (typeof text !== 'string')
    return problem('spec.config', `is ${describeValue(text)}: write the CNI config as a string`);
  if (text.length > MAX_NAD_CONFIG_LENGTH) {
    const message = `has ${text.length} characters: make it shorter, at most ${MAX_NAD_CONFIG_LENGTH} are allowed`;
    return problem('spec.config', message);
  }
  let config: unknown;
  try {
    config = JSON.parse(text);
  } catch (error) {
    // Without the part of the text that V8 quotes: the message is also for users who may not read the NAD.
    const cause = (error as SyntaxError).message.replace(/, (\.{3})?"[^]*$/, '');
    return problem('spec.config', `is not JSON (${cause}): correct it`);
  }
  if (!isRecord(config)) return problem('spec.config', 'is not a JSON object: write a CNI config or config list');
  const { plugins } = config;
  if (Array.isArray(plugins) && plugins.length > MAX_NAD_PLUGINS) {
    return problem('spec.config', `has ${plugins.length} plugins: remove some, at most ${MAX_NAD_PLUGINS} are allowed`);
  }
  return { ok: true, value: config };
}

function readNetwork(config: Record<string, unknown>, nadName: string): NetworkConfig {
  const name: unknown = config.name ?? '';
  if (typeof name !== 'string') {
    return problem('spec.config.name', `is ${describeValue(name)}: set it to the network's name, a string`);
  }
  const plugins: unknown = config.plugins ?? [];
  if (!Array.isArray(plugins)) {
    return problem('spec.config.plugins', `is ${describeValue(plugins)}: set it to a list of CNI plugin configs`);
  }
  const flags = readAllowPersistentIPs(name || nadName, config, plugins);
  return flags.ok ? readRole(flags.network, config) : flags;
}

/** OVN-Kubernetes reads the role at the top level only. A role of another type is that of another plugin. */
function readRole(network: CniNetwork, { role, subnets = '' }: Record<string, unknown>): NetworkConfig {
  if (role !== 'primary') return { ok: true, network };
  if (typeof subnets !== 'string') {
    return problem(
      'spec.config.subnets',
      `is ${describeValue(subnets)}: write CIDRs separated by commas, in one string`,
    );
  }
  if (subnets.length > MAX_SUBNETS_LENGTH) {
    return problem('spec.config.subnets', `has ${subnets.length} characters: write at most ${MAX_SUBNETS_LENGTH}`);
  }
  return { ok: true, network: { ...network, primary: { subnets } } };
}

function readAllowPersistentIPs(name: string, config: Record<string, unknown>, plugins: unknown[]): NetworkConfig {
  const places: [string, unknown][] = [['spec.config', config]];
  plugins.forEach((plugin, index) => places.push([`spec.config.plugins[${index}]`, plugin]));
  let allowed = false;
  let denies = false;
  const misspelled: string[] = [];
  for (const [path, place] of places) {
    if (!isRecord(place)) return problem(path, `is ${describeValue(place)}: set it to a CNI plugin config`);
    const flag = place.allowPersistentIPs ?? false;
    if (typeof flag !== 'boolean') {
      const message = `is ${describeValue(flag)}: set it to true or false, without quotes`;
      return problem(`${path}.allowPersistentIPs`, message);
    }
    allowed ||= flag;
    denies ||= place.allowPersistentIPs === false;
    misspelled.push(
      ...Object.keys(place)
        .filter(isMisspelledFlag)
        .map((key) => `${path}.${key}`),
    );
  }
  const network = {
    name,
    allowPersistentIPs: allowed,
    ...(denies && !allowed && { deniesPersistentIPs: true as const }),
    ...(misspelled.length > 0 && { misspelledFlags: misspelled.slice(0, MAX_MISSPELLED) }),
  };
  return { ok: true, network };
}

/** True for keys that differ from the flag by two letters at most, not counting capitals and separators. */
function isMisspelledFlag(key: string): boolean {
  if (key === FLAG || Math.abs(key.length - FLAG.length) > MAX_EDITS + 4) return false;
  return isWithinEdits(key.replace(/[-_ ]/g, '').toLowerCase(), FLAG.toLowerCase(), MAX_EDITS);
}

function isWithinEdits(a: string, b: string, edits: number): boolean {
  let start = 0;
  while (start < a.length && a[start] === b[start]) start++;
  const [x, y] = [a.slice(start), b.slice(start)];
  if (x === '' || y === '') return x.length + y.length <= edits;
  const [restX, restY] = [x.slice(1), y.slice(1)];
  const tails = [[restX, restY] as const, [restX, y] as const, [x, restY] as const];
  return edits > 0 && tails.some(([left, right]) => isWithinEdits(left, right, edits - 1));
}

function problem(field: string, message: string): InvalidNetworkConfig {
  return { ok: false, problem: { field, message } };
}
