import type { IPAMClaim } from '../../api/ipam-claim.js';
import type { Delivery } from '../../api/nad-guests.js';
import type { NetworkConfig } from '../../api/network-attachment.js';
import type { Pod } from '../../api/pod.js';
import type { PrimaryNetwork } from '../../cluster/primary-network.js';
import type { ObservedVm, ObservedVmi } from './owner-spec.js';

export type NetworkLookup = { found: true; config: NetworkConfig; delivery: Delivery } | { found: false };

/** All input of a plan for one workload: the VM and the VMI of one name. */
export interface ObservedWorkload {
  namespace: string;
  name: string;
  /** The feature gate is open and the namespace has not opted out. */
  canCreateClaims: boolean;
  /** Its namespace is labelled for a primary user-defined network, and the feature gate is enabled. */
  needsPrimaryNetwork: boolean;
  primaryNetwork: PrimaryNetwork | undefined;
  isNamespaceDeleted: boolean;
  /** For each owner. */
  maxClaims: number;
  /** How long a restored claim waits for its owner, from its creation. */
  restoreWaitMs: number;
  /** By a clock that begins at the time of day and is not set with it. */
  now: number;
  vm: ObservedVm | undefined;
  vmi: ObservedVmi | undefined;
  /** Launcher pods with networks that a VMI of this name, of any UID, controls, and those that no VMI controls but that refer to a claim. */
  launchers: readonly Pod[];
  /** Claims whose owner has this name, and those with a name that the workload may need. */
  claims: readonly IPAMClaim[];
  /** By `namespace/name` of the NAD. */
  networks: ReadonlyMap<string, NetworkLookup>;
}
