import { RESPONDERS_NAMESPACE, RESPONDER_INDEX } from '../../api/names.js';
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
const KEY = 'index';

interface TableIndexDeps {
  readonly client: Pick<Client, 'find' | 'create' | 'replace'>;
  readonly log: Pick<Logger, 'warn'>;
  /** Of responders. */
  readonly maxStalenessMs: number;
  /** Called for each beat, after the one before was confirmed. */
  readonly current: () => CurrentTables;
}

/** Writes the index of all tables again and again, so that responders know which versions are current. */
export class TableIndex implements Reconciler {
  readonly name = 'table-index';
  readonly workers = 1;
  readonly #deps: TableIndexDeps;
  /** As it was read or written last. Undefined: that is unknown. */
  #confirmed: ConfigMap | undefined;

  constructor(deps: TableIndexDeps) {
    this.#deps = deps;
  }

  /** The last beat that the API server has confirmed. */
  get beat(): IndexBeat | undefined {
    return this.#confirmed && beatOf(this.#confirmed);
  }

  listen(): void {
    // it follows the clock
  }

  allKeys(): readonly string[] {
    return [KEY];
  }

  createSync(): Sync {
    this.#confirmed = undefined;
    return async (_key: string, signal: AbortSignal) => {
      try {
        await this.#write(signal);
      } catch (error) {
        // the write may have been carried out, or will be
        this.#confirmed = undefined;
        if (!signal.aborted && !isAlreadyExists(error))
          this.#deps.log.warn(
            { configmap: RESPONDER_INDEX },
            `the tables of responders get stale: ${messageOf(error)}`,
          );
      }
      return { requeueAfterMs: this.#deps.maxStalenessMs / BEATS };
    };
  }

  async #write(signal: AbortSignal): Promise<void> {
    const { client, current } = this.#deps;
    const options = { signal, deadlineMs: WRITE_MS };
    const ref = { namespace: RESPONDERS_NAMESPACE, name: RESPONDER_INDEX };
    this.#confirmed ??= await client.find(CONFIG_MAPS, ref, options);
    if (this.#confirmed === undefined) {
      // the UID, which beats need, is known afterwards
      const tables = current();
      // most clusters have no responders
      if (Object.keys({ ...tables.versions, ...tables.behind }).length > 0)
        this.#confirmed = await client.create(CONFIG_MAPS, { metadata: ref, data: indexData(1, tables) }, options);
      return;
    }
    const { metadata } = this.#confirmed;
    const data = indexData(beatOf(this.#confirmed).beat + 1, current());
    this.#confirmed = await client.replace(CONFIG_MAPS, { metadata, data }, options);
  }
}
