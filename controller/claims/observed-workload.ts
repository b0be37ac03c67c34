import type { IPAMClaim } from '../../api/ipam-claim.js';
import type { NetworkConfig } from '../../api/network-attachment.js';
import type { Pod } from '../../api/pod.js';
import type { ObservedVm, ObservedVmi } from './owner-spec.js';

export type NetworkLookup = { found: true; config: NetworkConfig } | { found: false };

/** Everything that is decided from about one workload: the VM and the VMI of one name. */
export interface ObservedWorkload {
  namespace: string;
  name: string;
  /** New claims may be made: the gate is open and the namespace has not opted out. */
  canCreateClaims: boolean;
  /** How many claims one owner may have. */
  maxClaims: number;
  vm: ObservedVm | undefined;
  vmi: ObservedVmi | undefined;
  /** Launcher pods with networks that a VMI of this name controls, of whatever UID, and those that no VMI controls any more, but refer to a claim. */
  launchers: readonly Pod[];
  /** Claims whose owner has this name, and those that have a name which may be wanted. */
  claims: readonly IPAMClaim[];
  /** By `namespace/name` of the NAD. */
  networks: ReadonlyMap<string, NetworkLookup>;
}
