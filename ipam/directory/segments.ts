import type { ParsedNad } from '../../cluster/transforms.js';
import { isServingNamespace } from './resolution.js';
import type { EvaluatedPool } from './pool-state.js';

/** The pools and NADs of one network. */
export interface NetworkPools {
  readonly admin: readonly EvaluatedPool[];
  /** By the namespace of the NADs. */
  readonly derived: ReadonlyMap<string, readonly EvaluatedPool[]>;
  readonly nads: readonly ParsedNad[];
}

/** Returns the pools whose addresses are used on each layer-2 segment: those that serve a NAD attached to it. */
export function poolsBySegment(networks: Iterable<NetworkPools>): ReadonlyMap<string, ReadonlySet<EvaluatedPool>> {
  const found = new Map<string, Set<EvaluatedPool>>();
  for (const { admin, derived, nads } of networks) {
    for (const { segment, metadata } of nads) {
      if (segment === undefined) continue;
      const { namespace = '' } = metadata;
      const pools = found.get(segment) ?? new Set();
      found.set(segment, pools);
      for (const pool of derived.get(namespace) ?? []) pools.add(pool);
      for (const pool of admin) if (isServingNamespace(pool, namespace)) pools.add(pool);
    }
  }
  return found;
}
