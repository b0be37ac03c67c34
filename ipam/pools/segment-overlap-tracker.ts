import type { Clock } from '../../kube/clock.js';
import type { PoolDirectory } from '../../addressing/directory/directory.js';
import { compiledPool } from '../../addressing/directory/pool-state.js';
import { describeOverlap, findOverlaps } from './segment-overlap.js';

/** Minimum time between two comparisons of all segments, however often tenants change their NADs. */
export const COMPARE_INTERVAL_MS = 10_000;

/** Messages about pools that overlap another pool on their layer-2 segment. Follows the directory. */
export class SegmentOverlapTracker {
  readonly #directory: Pick<PoolDirectory, 'poolsBySegment'>;
  readonly #clock: Pick<Clock, 'setTimer'>;
  readonly #changed: (pools: readonly string[]) => void;
  #messages: ReadonlyMap<string, string> = new Map();
  #cancel: (() => void) | undefined;
  #isStale = false;

  /** @param changed called with the pools whose message has changed */
  constructor(
    directory: Pick<PoolDirectory, 'poolsBySegment' | 'onChange'>,
    clock: Pick<Clock, 'setTimer'>,
    changed: (pools: readonly string[]) => void,
  ) {
    this.#directory = directory;
    this.#clock = clock;
    this.#changed = changed;
    directory.onChange(() => this.#update());
  }

  messageFor(pool: string): string | undefined {
    return this.#messages.get(pool);
  }

  /** Compares at once. A new leader needs it: what it compared before its caches had synced may be wrong. */
  start(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    this.#update();
  }

  stop(): void {
    this.#cancel?.();
  }

  #update(): void {
    this.#isStale = true;
    if (this.#cancel !== undefined) return;
    this.#isStale = false;
    this.#cancel = this.#clock.setTimer(COMPARE_INTERVAL_MS, () => {
      this.#cancel = undefined;
      if (this.#isStale) this.#update();
    });
    const before = this.#messages;
    this.#messages = this.#compare();
    const names = new Set([...before.keys(), ...this.#messages.keys()]);
    this.#changed([...names].filter((name) => before.get(name) !== this.#messages.get(name)));
  }

  #compare(): ReadonlyMap<string, string> {
    const messages = new Map<string, string>();
    for (const [wire, judged] of [...this.#directory.poolsBySegment].sort(([a], [b]) => (a < b ? -1 : 1))) {
      const pools = [...judged].flatMap((each) => {
        const pool = compiledPool(each);
        return pool === undefined ? [] : [{ pool, nadNamespace: each.nadNamespace }];
      });
      const overlaps = findOverlaps(pools);
      for (const { pool, nadNamespace } of pools) {
        const overlap = overlaps.get(pool.name);
        if (overlap === undefined || messages.has(pool.name)) continue;
        messages.set(pool.name, describeOverlap(wire, overlap, nadNamespace));
      }
    }
    return messages;
  }
}
