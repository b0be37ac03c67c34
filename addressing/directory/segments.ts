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
  for (const network of networks) {
    for (const nad of network.nads) {
      if (nad.segment === undefined) continue;
      const pools = found.get(nad.segment) ?? new Set();
      found.set(nad.segment, pools);
      for (const pool of poolsOf(nad, network)) pools.add(pool);
    }
  }
  return found;
}

/** Returns the pools on each segment, of networks whose own are known. */
export function mergeSegments(
  networks: Iterable<{ readonly bySegment: ReadonlyMap<string, ReadonlySet<EvaluatedPool>> }>,
): ReadonlyMap<string, ReadonlySet<EvaluatedPool>> {
  const merged = new Map<string, Set<EvaluatedPool>>();
  for (const { bySegment } of networks) {
    for (const [segment, pools] of bySegment) {
      const all = merged.get(segment) ?? new Set();
      merged.set(segment, all);
      for (const pool of pools) all.add(pool);
    }
  }
  return merged;
}

function poolsOf({ metadata, delivery }: ParsedNad, { admin, derived }: NetworkPools): readonly EvaluatedPool[] {
  const { namespace = '' } = metadata;
  const admins = admin.filter((pool) => isServingNamespace(pool, namespace));
  if (delivery.kind === 'cni') return [...(derived.get(namespace) ?? []), ...admins];
  return admins.filter(({ servesGuests }) => servesGuests);
}
