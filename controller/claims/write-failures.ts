import type { Clock } from '../../kube/clock.js';

/** For how long the writes for each workload have failed although nothing is wrong with them. */
export class WriteFailures {
  readonly #clock: Pick<Clock, 'now'>;
  readonly #since = new Map<string, number>();

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock;
  }

  /** @returns the time since the first failure, in ms */
  failed(workload: string): number {
    const now = this.#clock.now();
    const since = this.#since.get(workload) ?? now;
    this.#since.set(workload, since);
    return now - since;
  }

  ended(workload: string): void {
    this.#since.delete(workload);
  }
}
