import type { NetworkAttachmentDefinition } from '../../api/network-attachment.js';
import type { Client } from '../../kube/client.js';
import { NETWORK_ATTACHMENT_DEFINITIONS } from '../../kube/resources.js';

export interface NetworkOptions {
  /** `allowPersistentIPs` of the config; true by default. */
  persistent?: boolean;
  namespace?: string;
  /** The whole config in place of the usual one; a string is taken as it is. */
  config?: object | string;
}

/** Makes or changes a NAD `name` of a bridge network called `<name>-net`. */
export async function putNetwork(
  client: Client,
  name: string,
  options: NetworkOptions & { namespace: string },
): Promise<NetworkAttachmentDefinition> {
  const { namespace, persistent = true } = options;
  const config = options.config ?? {
    cniVersion: '0.4.0',
    name: `${name}-net`,
    type: 'bridge',
    bridge: `br-${name}`,
    allowPersistentIPs: persistent,
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
