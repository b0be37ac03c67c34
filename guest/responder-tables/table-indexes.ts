import { RESPONDERS_NAMESPACE } from '../../api/names.js';
import type { Client } from '../../kube/client.js';
import type { Sync } from '../../kube/controller-loop.js';
import { isAlreadyExists, messageOf } from '../../kube/errors.js';
import type { Logger } from '../../kube/log.js';
import { CONFIG_MAPS, type ConfigMap } from '../../kube/resources.js';
import type { Reconciler } from '../views.js';
import { type CurrentTables, beatOf, indexData } from './published-index.js';
import type { IndexBeat } from './published-table.js';

/** Beats within `--max-staleness`. Responders read five times meanwhile, and need two beats between two reads. */
const BEATS = 15;
const WRITE_MS = 5_000;

interface TableIndexesDeps {
  readonly client: Pick<Client, 'find' | 'create' | 'replace'>;
  readonly log: Pick<Logger, 'warn'>;
  /** Of responders. */
  readonly maxStalenessMs: number;
  /** Of all indexes. */
  readonly names: readonly string[];
  /** The tables of one index. Called for each beat, after the one before was confirmed. */
  readonly current: (index: string) => CurrentTables;
}

/** Writes the indexes of tables again and again, so that responders know which versions are current. */
export class TableIndexes implements Reconciler {
  readonly name = 'table-index';
  /** As many as indexes: one that waits must not make the others late. */
  readonly workers: number;
  readonly #deps: TableIndexesDeps;
  /** As they were read or written last, by name. A missing one is unknown. */
  readonly #confirmed = new Map<string, ConfigMap>();

  constructor(deps: TableIndexesDeps) {
    this.#deps = deps;
    this.workers = deps.names.length;
  }

  /** The last beat of an index that the API server has confirmed. */
  beatOf(index: string): IndexBeat | undefined {
    const confirmed = this.#confirmed.get(index);
    return confirmed && beatOf(confirmed);
  }

  listen(): void {
    // it follows the clock
  }

  allKeys(): readonly string[] {
    return this.#deps.names;
  }

  createSync(): Sync {
    this.#confirmed.clear();
    return async (name: string, signal: AbortSignal) => {
      try {
        await this.#write(name, signal);
      } catch (error) {
        // the write may have been carried out, or will be
        this.#confirmed.delete(name);
        if (!signal.aborted && !isAlreadyExists(error))
          this.#deps.log.warn({ configmap: name }, `the tables of responders get stale: ${messageOf(error)}`);
      }
      return { requeueAfterMs: this.#deps.maxStalenessMs / BEATS };
    };
  }

  async #write(name: string, signal: AbortSignal): Promise<void> {
    const { client, current } = this.#deps;
    const options = { signal, deadlineMs: WRITE_MS };
    const ref = { namespace: RESPONDERS_NAMESPACE, name };
    const last = this.#confirmed.get(name) ?? (await client.find(CONFIG_MAPS, ref, options));
    const tables = current(name);
    if (last === undefined) {
      // most clusters have no responders
      if (Object.keys({ ...tables.versions, ...tables.behind }).length === 0) return;
      // the UID, which beats need, is known afterwards
      const first = { metadata: ref, data: indexData(1, tables) };
      this.#confirmed.set(name, await client.create(CONFIG_MAPS, first, options));
      return;
    }
    this.#confirmed.set(name, last);
    const next = { metadata: last.metadata, data: indexData(beatOf(last).beat + 1, tables) };
    this.#confirmed.set(name, await client.replace(CONFIG_MAPS, next, options));
  }
}
