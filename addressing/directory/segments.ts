import type { ParsedNad } from '../../cluster/transforms.js';
import { isServingNamespace } from './resolution.js';
import type { EvaluatedPool } from './pool-state.js';

/** The layer-2 segments of the NADs of one network and namespace. */
export interface Segments {
  /** Of NADs that delegate IPAM. */
  readonly cni: ReadonlySet<string>;
  /** Of NADs without IPAM, where a pool may serve guests. */
  readonly guest: ReadonlySet<string>;
}

/** The pools of one network, and the segments of its NADs by their namespace. */
interface NetworkSegments {
  readonly admin: readonly EvaluatedPool[];
  readonly namespaces: readonly string[];
  segmentsOf(namespace: string): Segments;
  poolsOf(namespace: string): readonly EvaluatedPool[];
}

export function segmentsOf(nads: Iterable<ParsedNad>): Segments {
  const [cni, guest] = [new Set<string>(), new Set<string>()];
  for (const { segment, delivery } of nads)
    if (segment !== undefined) (delivery.kind === 'cni' ? cni : guest).add(segment);
  return { cni, guest };
}

/** Returns the pools whose addresses are used on each layer-2 segment: those that serve a NAD attached to it. */
export function poolsBySegment(networks: Iterable<NetworkSegments>): ReadonlyMap<string, ReadonlySet<EvaluatedPool>> {
  const found = new Map<string, Set<EvaluatedPool>>();
  const add = (segments: ReadonlySet<string>, pools: readonly EvaluatedPool[]) => {
    for (const segment of segments) {
      const known = found.get(segment) ?? new Set();
      found.set(segment, known);
      for (const pool of pools) known.add(pool);
    }
  };
  for (const network of networks) {
    for (const namespace of network.namespaces) {
      const { cni, guest } = network.segmentsOf(namespace);
      const admins = network.admin.filter((pool) => isServingNamespace(pool, namespace));
      add(cni, [...network.poolsOf(namespace), ...admins]);
      add(
        guest,
        admins.filter(({ servesGuests }) => servesGuests),
      );
    }
  }
  return found;
}
