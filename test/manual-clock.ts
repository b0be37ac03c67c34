import type { Clock } from '../kube/clock.js';

interface Alarm {
  at: number;
  run: () => void;
}

/**
 * A clock that goes on only when it is told to, for code that also waits for things that no fake timer moves, such as
 * the thread pool.
 */
export class ManualClock implements Clock {
  #now: number;
  /** By how many milliseconds the wall clock was set. */
  #set = 0;
  readonly #alarms = new Set<Alarm>();
  #watchers: (() => void)[] = [];

  constructor(now: number) {
    this.#now = now;
  }

  now(): number {
    return this.#now;
  }

  wall(): number {
    return this.#now + this.#set;
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      if (signal?.aborted) {
        resolve();
        return;
      }
      const finish = () => {
        cancel();
        signal?.removeEventListener('abort', finish);
        resolve();
      };
      const cancel = this.setTimer(ms, finish);
      signal?.addEventListener('abort', finish, { once: true });
    });
  }

  setTimer(ms: number, run: () => void): () => void {
    const alarm = { at: this.#now + ms, run };
    this.#alarms.add(alarm);
    for (const tell of this.#watchers.splice(0)) tell();
    return () => this.#alarms.delete(alarm);
  }

  /** The time of the next alarm. */
  get next(): number | undefined {
    return [...this.#alarms].map(({ at }) => at).sort((a, b) => a - b)[0];
  }

  /** Resolves once that many alarms are set, so that the code under test only waits for time. */
  async untilAlarmsSet(alarms = 1): Promise<void> {
    while (this.#alarms.size < alarms) await new Promise<void>((resolve) => this.#watchers.push(resolve));
  }

  /** Advances to a point in time and runs the alarms that are due. */
  advanceTo(to: number): void {
    this.#now = Math.max(this.#now, to);
    for (const alarm of [...this.#alarms]) {
      if (alarm.at > this.#now) continue;
      this.#alarms.delete(alarm);
      alarm.run();
    }
  }

  /** Advances from alarm to alarm to a point in time. The code under test must set a new alarm after each one. */
  async stepThrough(to: number): Promise<void> {
    await this.untilAlarmsSet();
    for (let next = this.next; next !== undefined && next <= to; next = this.next) {
      this.advanceTo(next);
      await this.untilAlarmsSet();
    }
    this.advanceTo(to);
  }

  /** Sets the wall clock back by so many milliseconds. */
  setBack(ms: number): void {
    this.#set -= ms;
  }
}
