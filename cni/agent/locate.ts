import {
  type NetworkSelection,
  NetworkSelectionError,
  interfaceOf,
  selectionsOf,
} from '../../api/network-selection.js';
import { objectKey } from '../../api/meta.js';
import { NETWORKS_ANNOTATION } from '../../api/names.js';
import type { Attachment } from './attachment.js';
import { CniCode, CniError } from './cni-error.js';
import type { NodePod } from './pods/node-pod.js';

/** The parts of a request that say for what the addresses are. */
export type Asked = Omit<Attachment, 'pod' | 'selection'>;

/**
 * Multus does not say for which element of a pod it calls a plugin: the interface's name tells.
 * @throws {CniError} 100 where the pod's annotation cannot be read
 */
export function attachmentOf(asked: Asked, pod: NodePod): Attachment {
  const { containerId, interfaceName, network, requested, mac } = asked;
  const selection = selectionOf(pod, interfaceName);
  return { pod, containerId, interfaceName, network, selection, requested, mac };
}

function selectionOf(pod: NodePod, interfaceName: string): NetworkSelection | undefined {
  try {
    return selectionsOf(pod).find((selection) => interfaceOf(selection) === interfaceName);
  } catch (error) {
    if (!(error instanceof NetworkSelectionError)) throw error;
    const message = `annotation ${NETWORKS_ANNOTATION} of pod ${objectKey(pod)} cannot be read: ${error.message}`;
    throw new CniError(CniCode.Refused, message);
  }
}
