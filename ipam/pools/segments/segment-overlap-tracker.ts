import type { Clock } from '../../../kube/clock.js';
import { runInSlices } from '../../../kube/run-in-slices.js';
import type { PoolDirectory } from '../../../addressing/directory/directory.js';
import { compiledPool } from '../../../addressing/directory/pool-state.js';
import { describeOverlap, overlapSteps } from './segment-overlap.js';

/** Minimum time between two comparisons of all segments, however often tenants change their NADs. */
export const COMPARE_INTERVAL_MS = 10_000;

/** Messages about pools that overlap another pool on their layer-2 segment. Follows the directory. */
export class SegmentOverlapTracker {
  readonly #directory: Pick<PoolDirectory, 'poolsBySegment'>;
  readonly #clock: Pick<Clock, 'now' | 'setTimer'>;
  readonly #changed: (pools: readonly string[]) => void;
  #messages: ReadonlyMap<string, string> = new Map();
  /** Ends a comparison that runs, and the time until the next one. */
  #cancel: (() => void) | undefined;
  #isStale = false;

  /** @param changed called with the pools whose message has changed */
  constructor(
    directory: Pick<PoolDirectory, 'poolsBySegment' | 'onChange'>,
    clock: Pick<Clock, 'now' | 'setTimer'>,
    changed: (pools: readonly string[]) => void,
  ) {
    this.#directory = directory;
    this.#clock = clock;
    this.#changed = changed;
    directory.onChange(() => {
      this.#isStale = true;
      if (this.#cancel === undefined) void this.#update();
    });
  }

  messageFor(pool: string): string | undefined {
    return this.#messages.get(pool);
  }

  /** Compares now. A new leader waits for it: what was compared before its caches had synced may be wrong. */
  start(): Promise<void> {
    return this.#update();
  }

  stop(): void {
    this.#cancel?.();
  }

  async #update(): Promise<void> {
    this.#cancel?.();
    this.#isStale = false;
    const abort = new AbortController();
    this.#cancel = () => abort.abort();
    const messages = await runInSlices(this.#compare(), this.#clock, abort.signal);
    if (messages === undefined || abort.signal.aborted) return;
    this.#cancel = this.#clock.setTimer(COMPARE_INTERVAL_MS, () => {
      this.#cancel = undefined;
      if (this.#isStale) void this.#update();
    });
    const before = this.#messages;
    this.#messages = messages;
    const names = new Set([...before.keys(), ...messages.keys()]);
    this.#changed([...names].filter((name) => before.get(name) !== messages.get(name)));
  }

  *#compare(): Generator<undefined, ReadonlyMap<string, string>> {
    const messages = new Map<string, string>();
    for (const [wire, judged] of [...this.#directory.poolsBySegment].sort(([a], [b]) => (a < b ? -1 : 1))) {
      const pools = [...judged].flatMap((each) => {
        const pool = compiledPool(each);
        return pool === undefined ? [] : [{ pool, nadNamespace: each.nadNamespace }];
      });
      const overlaps = yield* overlapSteps(pools);
      for (const { pool, nadNamespace } of pools) {
        const overlap = overlaps.get(pool.name);
        if (overlap === undefined || messages.has(pool.name)) continue;
        messages.set(pool.name, describeOverlap(wire, overlap, nadNamespace));
        yield;
      }
    }
    return messages;
  }
}
