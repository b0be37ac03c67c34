import { RESPONDERS_NAMESPACE } from '../../api/names.js';
import type { Client } from '../../kube/client.js';
import type { Clock } from '../../kube/clock.js';
import { messageOf } from '../../kube/errors.js';
import type { Logger } from '../../kube/log.js';
import { CONFIG_MAPS } from '../../kube/resources.js';
import type { TableStatement } from '../responder-tables/published-table.js';
import { type ReadIndex, readIndex } from '../responder-tables/published-index.js';

/** Reads that are kept: what `guest` prepares follows one of the last few beats. */
const MAX_READS = 32;

/** A live read of the index: every later beat was written after it began. */
interface BeatRead {
  readonly beat: number;
  /** When it began, by the clock of this process. */
  readonly at: number;
}

/**
 * Knows for how long a table may still be used as if it were current. It relies only on the order of its own reads: what was prepared after a beat is
 * younger than each read that showed a lower one. Invariant 6 holds for responders as for agents: a released address cools down for at least twice
 * the longest time.
 */
export class Freshness {
  readonly #table: string;
  readonly #maxStalenessMs: number;
  readonly #clock: Pick<Clock, 'now'>;
  /** The UID of the index whose beats were read. */
  #index = '';
  /** The oldest first, with rising beats. */
  #reads: BeatRead[] = [];
  #version: string | undefined;
  #showsUntil = -Infinity;
  /** The newest one. */
  #read: ReadIndex | undefined;

  /** @param table its name in the index */
  constructor(table: string, maxStalenessMs: number, clock: Pick<Clock, 'now'>) {
    this.#table = table;
    this.#maxStalenessMs = maxStalenessMs;
    this.#clock = clock;
  }

  /** The index was read. @param at when the read began */
  read(index: ReadIndex, at: number): void {
    const last = this.#reads.at(-1);
    // a restored cluster counts beats again that were counted before
    if (index.index !== this.#index || index.beat < (last?.beat ?? 0)) this.#reads = [];
    if (this.#reads.at(-1)?.beat === index.beat) this.#reads.pop();
    this.#index = index.index;
    this.#reads = [...this.#reads, { beat: index.beat, at }].slice(-MAX_READS);
    this.#read = index;
    this.#trustIndex();
  }

  /** The table is used from now on. */
  use({ version, after, ageMs }: TableStatement): void {
    if (version !== this.#version) this.#showsUntil = -Infinity;
    this.#version = version;
    if (after?.index === this.#index) this.#trust(after.beat, ageMs);
    this.#trustIndex();
  }

  /** 0: the table is stale. */
  forMs(): number {
    return Math.max(0, this.#showsUntil + this.#maxStalenessMs - this.#clock.now());
  }

  /** `guest` prepares a beat after the one before was confirmed. */
  #trustIndex(): void {
    if (this.#read === undefined || this.#version === undefined) return;
    const { versions, behind, beat, ageMs } = this.#read;
    if (versions[this.#table] === this.#version) this.#trust(beat - 1, ageMs);
    const dated = behind[this.#table];
    if (dated?.version === this.#version) this.#trust(beat - 1, dated.ageMs);
  }

  #trust(after: number, ageMs: number): void {
    const at = this.#reads.findLast(({ beat }) => beat < after)?.at;
    if (at !== undefined && Number.isFinite(ageMs)) this.#showsUntil = Math.max(this.#showsUntil, at - ageMs);
  }
}

const READ_MS = 5_000;

interface IndexReadOptions {
  readonly client: Pick<Client, 'get'>;
  readonly clock: Pick<Clock, 'now'>;
  readonly log: Pick<Logger, 'warn'>;
  readonly freshness: Pick<Freshness, 'read'>;
}

/** Reads the index live, which etcd answers with a quorum: an API server that is cut off from etcd cannot answer it. */
export async function readIndexLive(name: string, options: IndexReadOptions, signal: AbortSignal): Promise<void> {
  const { client, clock, log, freshness } = options;
  const started = clock.now();
  const ref = { namespace: RESPONDERS_NAMESPACE, name };
  try {
    freshness.read(readIndex(await client.get(CONFIG_MAPS, ref, { signal, deadlineMs: READ_MS })), started);
  } catch (error) {
    if (!signal.aborted) log.warn({ configmap: name }, `the table gets stale: ${messageOf(error)}`);
  }
}
