import type { ParsedNad } from '../../cluster/transforms.js';

/** The request of a NAD to have its pool in an address space. */
export interface SpaceRequest {
  readonly namespace: string;
  readonly network: string;
  readonly addressSpace: string;
}

export function spaceRequestOf({ metadata, config, delegation }: ParsedNad): SpaceRequest | undefined {
  if (!config.ok || delegation.kind !== 'holdfast') return undefined;
  const network = config.network.name;
  return { namespace: metadata.namespace ?? '', network, addressSpace: delegation.config.addressSpace ?? network };
}
