import { HOLDFAST_IPAM } from '../../api/ipam-delegation.js';
import { isRecord } from '../../api/json.js';
import { type NetworkAttachmentDefinition, readCniConfig } from '../../api/network-attachment.js';

const FLAG = 'allowPersistentIPs';

/** Warns of an unreadable config that names Holdfast. It is never rejected, because it is unknown which IPAM it is for. */
export function warnOfUnreadableConfig(nad: NetworkAttachmentDefinition): string[] {
  const config = readCniConfig(nad);
  if (config.ok || !String(nad.spec?.config).includes(`"${HOLDFAST_IPAM}"`)) return [];
  const { field, message } = config.problem;
  return [
    `${field} ${message}. It names "${HOLDFAST_IPAM}", but no workload gets an address from it until it is corrected`,
  ];
}

/** Warns of keys that nothing reads, because they differ from the flag in upper and lower case. */
export function warnOfMisspelledFlag(nad: NetworkAttachmentDefinition): string[] {
  const config = readCniConfig(nad);
  if (!config.ok || config.value === undefined) return [];
  const { plugins } = config.value;
  const objects = [
    { path: 'spec.config', place: config.value as unknown },
    ...(Array.isArray(plugins) ? (plugins as unknown[]) : []).map((place, index) => ({
      path: `spec.config.plugins[${index}]`,
      place,
    })),
  ];
  return objects.flatMap(({ path, place }) =>
    misspelledFlags(place).map((key) => `${path}.${key} has no effect: write ${FLAG}, with exactly these capitals`),
  );
}

function misspelledFlags(object: unknown): string[] {
  if (!isRecord(object)) return [];
  return Object.keys(object).filter((key) => key !== FLAG && key.toLowerCase() === FLAG.toLowerCase());
}
