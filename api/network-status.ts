import type { Pod } from './pod.js';
import { NETWORK_STATUS_ANNOTATION } from './names.js';

/** One attachment that Multus reports (multi-net-spec §5.3). */
export interface NetworkStatus {
  /** `namespace/name` of the NAD. */
  name: string;
  interface?: string;
}

/** Returns the attachments in a pod's status annotation; none if it cannot be read. */
export function networkStatuses(pod: Pod): NetworkStatus[] {
  const value = pod.metadata.annotations?.[NETWORK_STATUS_ANNOTATION];
  if (value === undefined) return [];
  let list: unknown;
  try {
    list = JSON.parse(value);
  } catch {
    return [];
  }
  if (!Array.isArray(list)) return [];
  return list.filter((entry): entry is NetworkStatus => {
    const { name, interface: attached } = (entry ?? {}) as Partial<Record<keyof NetworkStatus, unknown>>;
    return typeof name === 'string' && (attached === undefined || typeof attached === 'string');
  });
}

/** Returns the addresses of an attachment, without prefix length; none if they cannot be read. */
export function reportedIPsOf(attachment: NetworkStatus): string[] {
  const { ips } = attachment as { ips?: unknown };
  return Array.isArray(ips) ? ips.filter((ip): ip is string => typeof ip === 'string') : [];
}
