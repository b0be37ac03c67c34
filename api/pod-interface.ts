import { shortHash } from './hash.js';

/**
 * Returns the name of a pod's interface for a VM's secondary network as KubeVirt generates it: `pod` and 11 hex digits.
 * It depends only on the network's name in the VM (kubevirt pkg/network/namescheme).
 */
export function podInterfaceName(vmNetwork: string): string {
  return `pod${shortHash(vmNetwork, 11)}`;
}

/**
 * Returns the interface name that KubeVirt used before it hashed names: `net1` for the first secondary network.
 * Pods of VMs that such a version started, and their migration targets, still have it.
 * @param position 1-based, among the VM's secondary networks in the order of its spec
 */
export function ordinalInterfaceName(position: number): string {
  return `net${String(position)}`;
}
