import { createHash } from 'node:crypto';
import type { PoolSubnet } from '../../api/address-pool.js';
import type { NetworkAttachmentDefinition } from '../../api/networks/network-attachment.js';
import type { Client } from '../../kube/client.js';
import { NETWORK_ATTACHMENT_DEFINITIONS } from '../../kube/resources.js';

export interface NetworkOptions {
  /** `allowPersistentIPs` of the config; true by default. */
  persistent?: boolean;
  namespace?: string;
  /** Delegates IPAM to Holdfast with these subnets. If empty, an administrator's pool serves the network. */
  subnets?: readonly PoolSubnet[];
  /** More keys of the config's `ipam`. */
  ipam?: object;
  /** The CNI network's name; `<name>-net` by default. */
  network?: string;
  /** Replaces the whole config. A string is used unchanged. */
  config?: object | string;
}

/** Name of a network's bridge on nodes. With real pod networks, also the name of the segment. */
export function bridgeOf(network: string): string {
  return `br-${createHash('sha256').update(network).digest('hex').slice(0, 10)}`; // interface names have at most 15 characters
}

/** Creates or changes the NAD of a bridge network. */
export async function putNetwork(
  client: Client,
  name: string,
  options: NetworkOptions & { namespace: string },
): Promise<NetworkAttachmentDefinition> {
  const { namespace, persistent = true, network = `${name}-net` } = options;
  const ipam = options.subnets && { type: 'holdfast', subnets: options.subnets, ...options.ipam };
  const config = options.config ?? {
    cniVersion: '0.4.0',
    name: network,
    type: 'bridge',
    bridge: bridgeOf(network),
    allowPersistentIPs: persistent,
    ...(ipam && { ipam }),
  };
  const object = {
    apiVersion: 'k8s.cni.cncf.io/v1',
    kind: 'NetworkAttachmentDefinition',
    metadata: { name, namespace },
    spec: { config: typeof config === 'string' ? config : JSON.stringify(config) },
  };
  const patch = { type: 'apply', object, fieldManager: 'story', force: true } as const;
  return client.patch(NETWORK_ATTACHMENT_DEFINITIONS, { namespace, name }, patch);
}
