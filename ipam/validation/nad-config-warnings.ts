import { HOLDFAST_IPAM } from '../../api/ipam-delegation.js';
import { isRecord } from '../../api/json.js';
import { type NetworkAttachmentDefinition, readCniConfig } from '../../api/network-attachment.js';

const FLAG = 'allowPersistentIPs';

/** A config that cannot be read, but names Holdfast: whose it is nobody knows, so that it is never refused. One line, or none. */
export function warnOfUnreadableConfig(nad: NetworkAttachmentDefinition): string[] {
  const config = readCniConfig(nad);
  if (config.ok || !String(nad.spec?.config).includes(`"${HOLDFAST_IPAM}"`)) return [];
  const { field, message } = config.problem;
  return [`${field} ${message}. It names "${HOLDFAST_IPAM}", and nobody gets addresses by it as it is`];
}

/** Keys of a config of ours that are read by nobody, for they are the flag but for the case of letters. */
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
    misspelledFlags(place).map((key) => `${path}.${key} is without effect: write ${FLAG}, in these very letters`),
  );
}

function misspelledFlags(object: unknown): string[] {
  if (!isRecord(object)) return [];
  return Object.keys(object).filter((key) => key !== FLAG && key.toLowerCase() === FLAG.toLowerCase());
}
