import { shortHash } from './hash.js';
import { HOLDFAST_IPAM, ipamSections } from './ipam-delegation.js';
import { isRecord } from './json.js';
import { type NetworkAttachmentDefinition, readCniConfig } from './network-attachment.js';

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

/**
 * Returns the fingerprints of a NAD's plugins that delegate IPAM to Holdfast, usually one.
 * @returns undefined if the NAD has no config, because it is in a file on each node
 */
export function delegatingPluginFingerprints(nad: NetworkAttachmentDefinition): readonly string[] | undefined {
  const config = readCniConfig(nad);
  if (!config.ok) return [];
  if (config.value === undefined) return undefined;
  const ours = ipamSections(config.value).filter(({ type }) => type === HOLDFAST_IPAM);
  return ours.flatMap(({ plugin }) => pluginFingerprint(plugin) ?? []);
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
