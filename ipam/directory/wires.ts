import type { NetworkAttachment } from '../../cluster/shrink.js';
import { takesUsers } from './resolution.js';
import type { JudgedPool } from './verdict.js';

/** The pools and NADs of one network. */
export interface NetworkPools {
  readonly admin: readonly JudgedPool[];
  /** By the namespace of the NADs. */
  readonly derived: ReadonlyMap<string, readonly JudgedPool[]>;
  readonly nads: readonly NetworkAttachment[];
}

/** The pools whose addresses are used on each layer-2 segment: those that serve a NAD that connects to it. */
export function poolsByWire(networks: Iterable<NetworkPools>): ReadonlyMap<string, ReadonlySet<JudgedPool>> {
  const found = new Map<string, Set<JudgedPool>>();
  for (const { admin, derived, nads } of networks) {
    for (const { wire, metadata } of nads) {
      if (wire === undefined) continue;
      const { namespace = '' } = metadata;
      const pools = found.get(wire) ?? new Set();
      found.set(wire, pools);
      for (const pool of derived.get(namespace) ?? []) pools.add(pool);
      for (const pool of admin) if (takesUsers(pool, namespace)) pools.add(pool);
    }
  }
  return found;
}
