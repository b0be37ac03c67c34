import type { NetworkSelection } from '../../api/network-selection.js';
import type { Address } from '../../addressing/address/address.js';
import type { NodePod } from './pods/node-pod.js';

/** A pod interface in one sandbox, for which an ADD requests addresses of a network. */
export interface Attachment {
  readonly pod: NodePod;
  /** ID of the sandbox. It changes when the sandbox is recreated. */
  readonly containerId: string;
  /** Name of the interface inside the pod. */
  readonly interfaceName: string;
  /** The CNI network: `name` in the config. */
  readonly network: string;
  /** The element of the pod's annotations that names the NAD. */
  readonly selection: NetworkSelection;
  /** Addresses requested by `runtimeConfig.ips`, `args.cni.ips` or CNI_ARGS; at most one per family. */
  readonly requested: readonly Address[];
  /** Lower case, with colons. */
  readonly mac: string | undefined;
}

/** One address of an attachment. */
export interface GrantedAddress {
  readonly address: Address;
  /** Prefix length of the subnet. */
  readonly prefixLength: number;
  readonly gateway?: Address;
}

/** All addresses of an attachment: one for each family of the pool, IPv4 first. */
export type Grant = readonly GrantedAddress[];
