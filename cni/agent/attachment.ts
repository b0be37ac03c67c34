import type { NetworkSelection } from '../../api/network-selection.js';
import type { Address } from '../../ipam/core/address.js';
import type { NodePod } from './pods/node-pod.js';

/** One interface of one sandbox of a pod, which asks for addresses of a network. */
export interface Attachment {
  readonly pod: NodePod;
  /** Of the sandbox. A pod gets a new one when its sandbox is made anew. */
  readonly containerId: string;
  /** In the pod. */
  readonly interfaceName: string;
  /** The CNI network: `name` of the config. */
  readonly network: string;
  /** The element of the pod's annotations that names the NAD. */
  readonly selection: NetworkSelection;
  /** Addresses that `runtimeConfig.ips`, `args.cni.ips` or CNI_ARGS ask for; at most one of a family. */
  readonly requested: readonly Address[];
  /** Lower case, with colons. */
  readonly mac: string | undefined;
}

/** An address that an attachment has. */
export interface GrantedAddress {
  readonly address: Address;
  /** Of the subnet. */
  readonly prefixLength: number;
  readonly gateway?: Address;
}

/** All addresses of an attachment: one of each family of the pool, IPv4 first. */
export type Grant = readonly GrantedAddress[];
