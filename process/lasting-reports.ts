import type { Clock } from '../kube/clock.js';
import { LASTING_EVENT_MS } from '../kube/events.js';
import { forEachInSlices } from '../kube/run-in-slices.js';
import { PeriodicTask } from './periodic-task.js';

/** What is wrong with an object. `key` is the same in each round. */
export interface LastingProblem {
  readonly key: string;
  readonly report: () => void;
}

interface LastingReportsOptions<T> {
  readonly clock: Pick<Clock, 'now' | 'sleep'>;
  readonly pauseMs: number;
  /** How long a problem must last before it is reported. */
  readonly afterMs: number;
  /** While it is closed, nothing is looked at. Default: open. */
  readonly gate?: { isOpen(): boolean };
  readonly objects: () => readonly T[];
  readonly problemsOf: (object: T) => readonly LastingProblem[];
  /** Called after each round with the number of problems that have lasted so long. */
  readonly count?: (problems: number) => void;
}

interface ProblemTimes {
  readonly since: number;
  reportedAt: number;
}

/** Reports problems that last, each again before the API server deletes its event. */
export class LastingReports<T> extends PeriodicTask {
  readonly #options: LastingReportsOptions<T>;
  /** When each problem was first seen, and last reported, by key. Those that a round does not find are forgotten. */
  #known = new Map<string, ProblemTimes>();

  constructor(options: LastingReportsOptions<T>) {
    super({ clock: options.clock, pauseMs: options.pauseMs, run: (signal) => this.#round(signal) });
    this.#options = options;
  }

  override async stop(): Promise<void> {
    await super.stop();
    this.#known.clear();
    this.#options.count?.(0);
  }

  async #round(signal: AbortSignal): Promise<void> {
    const { clock, afterMs, gate, objects, problemsOf, count } = this.#options;
    if (gate?.isOpen() === false) return;
    const now = clock.now();
    const seen = new Map<string, ProblemTimes>();
    let lasting = 0;
    const check = (object: T) => {
      for (const { key, report } of problemsOf(object)) {
        const times = this.#known.get(key) ?? { since: now, reportedAt: -Infinity };
        seen.set(key, times);
        if (now - times.since < afterMs) continue;
        lasting++;
        if (now - times.reportedAt < LASTING_EVENT_MS) continue;
        times.reportedAt = now;
        report();
      }
    };
    if (!(await forEachInSlices(objects(), check, clock, signal))) return;
    this.#known = seen;
    count?.(lasting);
  }
}
