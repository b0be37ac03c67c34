import { shortHash } from './hash.js';

/**
 * The name of a pod's interface for a VM's secondary network, as KubeVirt makes it: `pod` and 11 hex digits.
 * Its only input is the network's name in the VM (kubevirt pkg/network/namescheme).
 */
export function podInterfaceName(vmNetwork: string): string {
  return `pod${shortHash(vmNetwork, 11)}`;
}

/**
 * The name that KubeVirt gave the interface before it hashed names: `net1` for the first secondary network.
 * Pods of VMs started by such a KubeVirt, and their migration targets, still carry it.
 * @param position 1-based, among the VM's secondary networks in the order of its spec
 */
export function ordinalInterfaceName(position: number): string {
  return `net${String(position)}`;
}
