import type { IPAMClaim } from '../api/ipam-claim.js';
import type { VirtualMachine, VirtualMachineInstance } from '../api/kubevirt.js';
import type { NetworkConfig } from '../api/networks/network-attachment.js';

/** The cluster as a review sees it: the pod's namespace, and NADs of all namespaces. Reads use only memory. */
export interface ClusterView {
  /** Interfaces without a claim get one: the feature gate is enabled and the namespace has not opted out. */
  readonly allowsNewClaims: boolean;
  /** Why an object may exist although it was not found: it could not be read. */
  readonly lookupFailure?: string | undefined;
  vmi(name: string): VirtualMachineInstance | undefined;
  vm(name: string): VirtualMachine | undefined;
  claim(name: string): IPAMClaim | undefined;
  /** Returns the claims whose owner, current or noted in annotations, has this UID. */
  claimsOf(ownerUid: string): readonly IPAMClaim[];
  /** @param key `namespace/name` of a NAD @returns undefined if there is no such NAD */
  network(key: string): NetworkConfig | undefined;
}

/** An object that must be read live before a negative answer, because it may have changed since it was cached. */
export interface Recheck {
  readonly kind: 'vmi' | 'vm' | 'claim' | 'network';
  /** The name; `namespace/name` for a network. */
  readonly key: string;
}

/** Returns a key that identifies the object. */
export function recheckKey({ kind, key }: Recheck): string {
  return `${kind} ${key}`;
}

/** A view that can read its objects live. */
export interface RecheckableView extends ClusterView {
  /** How many more objects may be read live. Default: no limit. */
  readonly readsLeft?: number;
  /** Whether the object was read live, found or not, or the read failed. */
  hasRechecked(recheck: Recheck): boolean;
  /** Reads an object live. Never rejects. */
  recheck(recheck: Recheck): Promise<void>;
}

/** Repeats a decision as long as live reads could change it and more are allowed. */
export async function decideWithRechecks<D extends { readonly rechecks: readonly Recheck[] }>(
  view: RecheckableView,
  decide: () => D,
): Promise<D> {
  for (;;) {
    const decision = decide();
    const unread = decision.rechecks.filter((recheck) => !view.hasRechecked(recheck));
    const open = new Map(unread.map((recheck) => [recheckKey(recheck), recheck]));
    if (open.size === 0 || view.readsLeft === 0) return decision;
    await Promise.all([...open.values()].slice(0, view.readsLeft).map((recheck) => view.recheck(recheck)));
  }
}
