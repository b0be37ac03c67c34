import { DEFAULT_NETWORK_ANNOTATION, NETWORKS_ANNOTATION } from '../../api/names.js';
import type { KubeObject } from '../../api/meta.js';
import { NetworkSelectionError, parseNetworkSelections } from '../../api/networks/network-selection.js';
import type { Client } from '../../kube/client.js';
import { NETWORK_ATTACHMENT_DEFINITIONS } from '../../kube/resources.js';

/** A layer-2 segment to which a node must be connected so that a network spans all nodes. */
export interface Segment {
  readonly name: string;
  readonly as: 'bridge' | 'nic';
}

interface Plugin {
  type?: string;
  bridge?: string;
  master?: string;
}

/** IFNAMSIZ - 1. */
const LONGEST_NAME = 15;

/** The segments of all networks of a pod. NADs that are missing or invalid are left to Multus and the plugins to report. */
export async function segmentsOf(client: Client, pod: KubeObject): Promise<Segment[]> {
  const configs = await Promise.all(networksOf(pod).map((nad) => client.find(NETWORK_ATTACHMENT_DEFINITIONS, nad)));
  return configs.flatMap((nad) => segmentsOfConfig(nad?.spec?.config ?? '{}'));
}

function networksOf(pod: KubeObject): { namespace: string; name: string }[] {
  const { annotations = {}, namespace = '' } = pod.metadata;
  return [NETWORKS_ANNOTATION, DEFAULT_NETWORK_ANNOTATION].flatMap((annotation) => {
    try {
      return parseNetworkSelections(annotations[annotation] ?? '', namespace).map(({ nad }) => nad);
    } catch (error) {
      if (error instanceof NetworkSelectionError) return [];
      throw error;
    }
  });
}

/** @param text a network config with one plugin or a list of plugins */
export function segmentsOfConfig(text: string): Segment[] {
  let config: Plugin & { plugins?: Plugin[] };
  try {
    config = JSON.parse(text) as typeof config;
  } catch {
    return [];
  }
  return (config.plugins ?? [config]).flatMap(({ type, bridge, master }): Segment[] => {
    const segment = type === 'bridge' ? bridge : type === 'macvlan' ? master : undefined;
    if (!segment || segment === 'cni0' || segment.length > LONGEST_NAME) return []; // cni0 exists on each node separately
    return [{ name: segment, as: type === 'bridge' ? 'bridge' : 'nic' }];
  });
}
