import { RESPONDER_INDEX, shortHash } from '../../api/names.js';
import type { ConfigMap } from '../../kube/resources.js';
import type { IndexBeat } from './published-table.js';

/** The objects that say which tables are current. Only `guest` writes them, which a policy enforces. */

/** Every responder reads its index whole, every few seconds: 48 bytes for each of its tables. */
const TABLES_OF_INDEX = 256;

/** The names of all indexes. Most clusters have one. */
export function indexNames(maxTables: number): string[] {
  const count = Math.max(1, Math.ceil(maxTables / TABLES_OF_INDEX));
  return Array.from({ length: count }, (_, number) =>
    number === 0 ? RESPONDER_INDEX : `${RESPONDER_INDEX}-${number}`,
  );
}

/** Chooses the index of a table, which its responders read in the table. */
export function indexOfTable(table: string, names: readonly string[]): string {
  return names[Number.parseInt(shortHash(table, 8), 16) % names.length] ?? RESPONDER_INDEX;
}

/** What `guest` knows about its tables, by name. */
export interface CurrentTables {
  /** How long ago everything had been seen. */
  readonly ageMs: number;
  /** Of the tables that have everything that `guest` has seen. */
  readonly versions: Readonly<Record<string, string>>;
  /** Of the others as they were built last. Responders of an earlier release do not read it. */
  readonly behind: Readonly<Record<string, DatedVersion>>;
}

/** A version that shows everything until `ageMs` ago. */
export interface DatedVersion {
  readonly version: string;
  readonly ageMs: number;
}

/** The index as one read showed it. */
export interface ReadIndex extends IndexBeat, CurrentTables {}

export function indexData(beat: number, { ageMs, versions, behind }: CurrentTables): Record<string, string> {
  return {
    beat: String(beat),
    ageMs: String(ageMs),
    versions: JSON.stringify(versions),
    behind: JSON.stringify(behind),
  };
}

export function beatOf({ metadata: { uid = '' }, data }: ConfigMap): IndexBeat {
  return { index: uid, beat: Number(data?.beat ?? 0) };
}

export function readIndex(object: ConfigMap): ReadIndex {
  const { ageMs, versions = '{}', behind = '{}' } = object.data ?? {};
  return {
    ...beatOf(object),
    ageMs: Number(ageMs),
    versions: JSON.parse(versions) as CurrentTables['versions'],
    behind: JSON.parse(behind) as CurrentTables['behind'],
  };
}
