import type { DropCounts } from './guard-notes.js';

/** Finds out from counters, which only grow until their table is replaced, how many packets are new. */
export class DropTally {
  /** By table and counter. Undefined before the first counts: what was dropped before is not new. */
  #known: Map<string, Map<string, number>> | undefined;

  /** @returns the packets since the last call, by table and counter; nothing for counters that have not changed */
  add(counts: DropCounts): Map<string, Map<string, number>> {
    const isFirst = this.#known === undefined;
    const known = (this.#known ??= new Map<string, Map<string, number>>());
    const added = new Map<string, Map<string, number>>();
    for (const [table, counters] of counts) {
      const before = known.get(table) ?? new Map<string, number>();
      const now = new Map(Object.entries(counters));
      const changed = [...now].flatMap(([counter, packets]): [string, number][] => {
        const last = before.get(counter) ?? 0;
        // fewer: the table was replaced
        const count = packets < last ? packets : packets - last;
        return count > 0 ? [[counter, count]] : [];
      });
      // a dump that is taken during a change may lack some
      known.set(table, new Map([...before, ...now]));
      if (changed.length > 0 && !isFirst) added.set(table, new Map(changed));
    }
    return added;
  }

  /** Forgets tables that no longer exist. */
  keep(tables: ReadonlySet<string>): void {
    for (const table of this.#known?.keys() ?? []) if (!tables.has(table)) this.#known?.delete(table);
  }
}
