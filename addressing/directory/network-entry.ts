import { byAge } from '../../api/meta.js';
import type { ParsedNad } from '../../cluster/transforms.js';
import { evaluationFingerprint, nadFingerprint } from './fingerprints.js';
import { type EvaluatedPool, type ParsedPool, evaluatePools } from './pool-state.js';
import { poolsBySegment } from './segments.js';

/** The pools and NADs of one network, each oldest first. */
export interface NetworkEntry {
  readonly pools: readonly EvaluatedPool[];
  /** Administrators' pools. */
  readonly admin: readonly EvaluatedPool[];
  /** By the namespace of the NADs. */
  readonly derived: ReadonlyMap<string, readonly EvaluatedPool[]>;
  /** By namespace. */
  readonly nads: ReadonlyMap<string, readonly ParsedNad[]>;
  readonly bySegment: ReadonlyMap<string, ReadonlySet<EvaluatedPool>>;
  /** Of what concerns the claims of all namespaces. */
  readonly fingerprint: string;
  /** Of what concerns only the claims on NADs of a namespace. */
  readonly fingerprints: ReadonlyMap<string, string>;
}

/** Namespaces of NADs; undefined: all. */
export type ChangedNamespaces = ReadonlySet<string> | undefined;

export function networkEntry(
  parsed: readonly ParsedPool[],
  attachments: readonly ParsedNad[],
  knowsNetworks: boolean,
): NetworkEntry {
  const pools = evaluatePools(parsed);
  const admin = pools.filter(({ nadNamespace }) => nadNamespace === undefined);
  const derived = groupBy(pools, ({ nadNamespace }) => nadNamespace);
  const nads = groupBy([...attachments].sort(byAge), ({ metadata }) => metadata.namespace ?? '');
  const describe = (namespace: string) =>
    JSON.stringify([
      derived.get(namespace)?.map(evaluationFingerprint),
      nads.get(namespace)?.map((nad) => nadFingerprint(nad)),
    ]);
  const namespaces = new Set([...derived.keys(), ...nads.keys()]);
  return {
    ...{ pools, admin, derived, nads },
    bySegment: poolsBySegment([{ admin, derived, nads: [...nads.values()].flat() }]),
    fingerprint: JSON.stringify([knowsNetworks, admin.map(evaluationFingerprint)]),
    fingerprints: new Map([...namespaces].map((namespace) => [namespace, describe(namespace)])),
  };
}

/** Returns the namespaces whose claims a change may concern. An empty set: none. */
export function changedNamespaces(before: NetworkEntry, after: NetworkEntry): ChangedNamespaces {
  if (before.fingerprint !== after.fingerprint) return undefined;
  const namespaces = new Set([...before.fingerprints.keys(), ...after.fingerprints.keys()]);
  return new Set([...namespaces].filter((each) => before.fingerprints.get(each) !== after.fingerprints.get(each)));
}

/** Groups elements by key. Elements without a key are left out. */
function groupBy<T>(elements: readonly T[], keyOf: (element: T) => string | undefined): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const element of elements) {
    const key = keyOf(element);
    if (key === undefined) continue;
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [element]);
    else group.push(element);
  }
  return groups;
}
