import type { IPAMClaim } from '../api/ipam-claim.js';
import type { VirtualMachine, VirtualMachineInstance } from '../api/kubevirt.js';
import type { NetworkConfig } from '../api/network-attachment.js';

/** What a review may see of the cluster: the pod's namespace, and NADs of any. Every look is a look into memory. */
export interface ClusterView {
  /** Interfaces without a claim shall get one: the gate is on, and the namespace has not opted out. */
  readonly allowsNewClaims: boolean;
  /** Why an object that is not seen may exist all the same: it could not be looked for. */
  readonly lookupFailure?: string | undefined;
  vmi(name: string): VirtualMachineInstance | undefined;
  vm(name: string): VirtualMachine | undefined;
  claim(name: string): IPAMClaim | undefined;
  /** The claims whose owner, present or remembered, has this UID. */
  claimsOf(ownerUid: string): readonly IPAMClaim[];
  /** @param key `namespace/name` of a NAD; undefined where there is none */
  network(key: string): NetworkConfig | undefined;
}

/** An object on which a bad answer hangs, and which may be younger than what the view knows of it. */
export interface Recheck {
  readonly kind: 'vmi' | 'vm' | 'claim' | 'network';
  /** The name; `namespace/name` for a network. */
  readonly key: string;
}

/** The same for all doubts about one object. */
export function recheckKey({ kind, key }: Recheck): string {
  return `${kind} ${key}`;
}
