import { shortHash } from '../names.js';
import { type HoldfastIpamConfig, readHoldfastIpam } from './ipam-config.js';
import { describeValue, isRecord } from '../json.js';
import {
  type CniNetwork,
  type NetworkAttachmentDefinition,
  type NetworkConfigProblem,
  readCniConfig,
} from './network-attachment.js';

/** The IPAM plugin's name in a CNI config. */
export const HOLDFAST_IPAM = 'holdfast';

/** The name of the whereabouts IPAM plugin. Holdfast reads its keys, so that a NAD can be moved. */
export const WHEREABOUTS_IPAM = 'whereabouts';

/** Returns warnings about keys of a NAD that nobody reads, because they are nearly the name of the flag. */
export function misspelledFlagProblems({ misspelledFlags = [] }: CniNetwork): string[] {
  return misspelledFlags.map((path) => `${path} has no effect: write allowPersistentIPs, with exactly these capitals`);
}

/** Says why VMs do not keep their addresses on a NAD although nobody has asked for that; undefined if they keep them, or if another IPAM decides. */
export function unintendedLoss(network: CniNetwork, delegation: IpamDelegation['kind']): string | undefined {
  if (network.allowPersistentIPs || delegation === 'other') return undefined;
  const [misspelled] = misspelledFlagProblems(network);
  if (misspelled !== undefined) return misspelled;
  if (delegation !== 'holdfast' || network.deniesPersistentIPs) return undefined;
  return 'spec.config has no "allowPersistentIPs": set it to true, or to false if VMs are to get another address at each start';
}

/** Characters that a misspelled name may have between its letters, or around them. */
const IGNORED = /[\s\p{Cf}"'._-]/gu;

/** The IPAM to which a NAD delegates. `invalid`: perhaps Holdfast, but the config cannot be read. */
export type IpamDelegation =
  | { kind: 'none' }
  | { kind: 'other'; type: string }
  | { kind: 'holdfast'; config: HoldfastIpamConfig }
  | { kind: 'invalid'; problem: NetworkConfigProblem };

/** An `ipam` object, its path in the NAD, and the plugin config that contains it. */
export interface IpamSection {
  path: string;
  plugin: Record<string, unknown>;
  ipam: Record<string, unknown>;
  type: string;
}

/**
 * Reads the `ipam` object of a NAD's config, at the top level or in a plugin of a list. Never throws. Configs of other IPAMs are not checked.
 */
export function readIpamDelegation(nad: NetworkAttachmentDefinition): IpamDelegation {
  const config = readCniConfig(nad);
  if (!config.ok) return { kind: 'invalid', problem: config.problem };
  if (config.value === undefined) return { kind: 'none' };
  const places = ipamSections(config.value);
  const ours = places.find(({ type }) => type === HOLDFAST_IPAM);
  if (ours === undefined) return delegatedElsewhere(places);
  const other = places.find((place) => place !== ours);
  if (other !== undefined) return delegatedTwice(ours, other);
  const misplaced = misplacedProblem(config.value, ours);
  if (misplaced !== undefined) return { kind: 'invalid', problem: { field: ours.path, message: misplaced } };
  const read = readHoldfastIpam(ours.ipam, ours.path);
  return read.ok ? { kind: 'holdfast', config: read.config } : { kind: 'invalid', problem: read.problem };
}

/** Returns the first `ipam` object that delegates to Holdfast. */
export function holdfastSection(config: Record<string, unknown>): IpamSection | undefined {
  return ipamSections(config).find(({ type }) => type === HOLDFAST_IPAM);
}

/** Returns the `ipam` objects of a CNI config that name an IPAM, at the top level and in the plugins of a list. */
export function ipamSections(config: Record<string, unknown>): IpamSection[] {
  const plugins: unknown[] = Array.isArray(config.plugins) ? config.plugins : [];
  const candidates: [string, unknown][] = [
    ['spec.config', config],
    ...plugins.map((plugin, index): [string, unknown] => [`spec.config.plugins[${index}]`, plugin]),
  ];
  return candidates.flatMap(([path, plugin]) => {
    if (!isRecord(plugin)) return [];
    const { ipam } = plugin;
    // `"ipam": {}` tells a plugin to use no IPAM
    if (!isRecord(ipam) || typeof ipam.type !== 'string' || ipam.type === '') return [];
    return [{ path: `${path}.ipam`, plugin, ipam, type: ipam.type }];
  });
}

/** A name that is ours but for its spelling is a mistake: the nodes have no plugin of that name. */
function delegatedElsewhere(places: readonly IpamSection[]): IpamDelegation {
  const misspelled = places.find(({ type }) => type.replace(IGNORED, '').toLowerCase() === HOLDFAST_IPAM);
  if (misspelled !== undefined) {
    const message = `is ${describeValue(misspelled.type)}, and no IPAM plugin has this name: write "${HOLDFAST_IPAM}"`;
    return { kind: 'invalid', problem: { field: `${misspelled.path}.type`, message } };
  }
  const [first] = places;
  return first === undefined ? { kind: 'none' } : { kind: 'other', type: first.type };
}

function delegatedTwice(ours: IpamSection, other: IpamSection): IpamDelegation {
  const [first, second] = [ours.path, other.path].sort();
  const message = `delegates IPAM, but ${first ?? ''} does so too: remove one of them`;
  return { kind: 'invalid', problem: { field: second ?? '', message } };
}

/** Multus reads a config with a type as that of one plugin, without its list; and libcni reads nothing beside a list. */
function misplacedProblem({ type, plugins }: Record<string, unknown>, { path }: IpamSection): string | undefined {
  const isOnePlugin = (type ?? '') !== '' || plugins === undefined;
  if (isOnePlugin === (path === 'spec.config.ipam')) return undefined;
  return isOnePlugin
    ? 'has no effect beside spec.config.type: remove spec.config.type'
    : 'has no effect beside plugins: move it into the plugin that creates the interface';
}

/** Keys of a plugin's config that libcni and Multus add, change or remove before they run the plugin. */
const CHANGED_BY_RUNTIME = new Set([
  'name',
  'cniVersion',
  'args',
  'capabilities',
  'runtimeConfig',
  'prevResult',
  'deviceID',
  'pciBusID',
]);

/** Configs of real plugins are not deeper; a hostile config must not exhaust the stack. */
const MAX_DEPTH = 32;

/**
 * Returns a fingerprint of a plugin's config that does not depend on what the runtime adds for one call.
 * @returns undefined for a config that is too deep
 */
export function pluginFingerprint(config: Record<string, unknown>): string | undefined {
  const lasting = Object.entries(config).filter(([key]) => !CHANGED_BY_RUNTIME.has(key));
  const canonical = canonicalize(Object.fromEntries(lasting), MAX_DEPTH);
  return canonical === undefined ? undefined : shortHash(JSON.stringify(canonical), 32);
}

/** Returns the paths and configs of Holdfast as a chained plugin, which only guards interfaces. */
export function chainedPlugins(config: Record<string, unknown>): { path: string; plugin: Record<string, unknown> }[] {
  const plugins: unknown[] = Array.isArray(config.plugins) ? config.plugins : [];
  return plugins.flatMap((plugin, index) =>
    isRecord(plugin) && plugin.type === HOLDFAST_IPAM ? [{ path: `spec.config.plugins[${index}]`, plugin }] : [],
  );
}

/**
 * Returns the fingerprints of a NAD's plugins that call Holdfast: that which delegates IPAM, or the chained plugin.
 * @returns undefined if the NAD has no config, because it is in a file on each node
 */
export function callingPluginFingerprints(nad: NetworkAttachmentDefinition): readonly string[] | undefined {
  const config = readCniConfig(nad);
  if (!config.ok) return [];
  if (config.value === undefined) return undefined;
  const ours = ipamSections(config.value).filter(({ type }) => type === HOLDFAST_IPAM);
  return [...ours, ...chainedPlugins(config.value)].flatMap(({ plugin }) => pluginFingerprint(plugin) ?? []);
}

/** Returns the value with all keys sorted; undefined if it is deeper than `depth`. */
function canonicalize(value: unknown, depth: number): unknown {
  if (depth === 0) return undefined;
  if (Array.isArray(value)) return unlessUndefined(value.map((each) => canonicalize(each, depth - 1)));
  if (!isRecord(value)) return value;
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  const values = unlessUndefined(entries.map(([, each]) => canonicalize(each, depth - 1)));
  return values && { keys: entries.map(([key]) => key), values };
}

function unlessUndefined(values: unknown[]): unknown[] | undefined {
  return values.includes(undefined) ? undefined : values;
}
