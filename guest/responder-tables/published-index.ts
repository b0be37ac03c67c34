import type { ConfigMap } from '../../kube/resources.js';
import type { IndexBeat } from './published-table.js';

/** The object that says which tables are current. Only `guest` writes it, which a policy enforces. */

/** The tables that have everything that `guest` has seen, with their versions, by name. */
export interface CurrentTables {
  /** How long ago everything had been seen. */
  readonly ageMs: number;
  readonly versions: Readonly<Record<string, string>>;
}

/** The index as one read showed it. */
export interface ReadIndex extends IndexBeat, CurrentTables {}

export function indexData(beat: number, { ageMs, versions }: CurrentTables): Record<string, string> {
  return { beat: String(beat), ageMs: String(ageMs), versions: JSON.stringify(versions) };
}

export function beatOf({ metadata: { uid = '' }, data }: ConfigMap): IndexBeat {
  return { index: uid, beat: Number(data?.beat ?? 0) };
}

export function readIndex(object: ConfigMap): ReadIndex {
  const { ageMs, versions = '{}' } = object.data ?? {};
  return { ...beatOf(object), ageMs: Number(ageMs), versions: JSON.parse(versions) as Record<string, string> };
}
