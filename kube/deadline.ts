import type { Clock } from './clock.js';
import { TransportError } from './errors.js';
import { abortable } from './abortable.js';

/** One signal for two reasons to give up: the caller's own, and time. */
export class Deadline {
  readonly #controller = new AbortController();
  readonly #caller: AbortSignal | undefined;
  readonly #clock: Clock;
  readonly #onAbort: () => void;
  #cancelTimer: () => void = () => undefined;
  #fault: { fault: 'deadline' | 'idle' | 'aborted'; message: string } | undefined;

  constructor(clock: Clock, caller?: AbortSignal) {
    this.#clock = clock;
    this.#caller = caller;
    this.#onAbort = () => this.#give({ fault: 'aborted', message: 'given up by the caller' });
    if (caller?.aborted) this.#onAbort();
    else caller?.addEventListener('abort', this.#onAbort, { once: true });
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Replaces the limit that was set before. */
  limit(ms: number, fault: 'deadline' | 'idle'): void {
    this.#cancelTimer();
    const message = fault === 'idle' ? `silent for ${ms} ms` : `no whole answer within ${ms} ms`;
    this.#cancelTimer = this.#clock.setTimer(ms, () => this.#give({ fault, message }));
  }

  /** What `promise` gives, unless the signal aborts first; then it rejects with the signal's reason. */
  race<T>(promise: Promise<T>): Promise<T> {
    return abortable(promise, this.#controller.signal);
  }

  /** Frees the timer and the listener. */
  clear(): void {
    this.#cancelTimer();
    this.#caller?.removeEventListener('abort', this.#onAbort);
  }

  /** Why the signal aborted, as an error about `request`; undefined while it has not. */
  error(request: string): TransportError | undefined {
    return this.#fault && new TransportError(this.#fault.fault, `${request}: ${this.#fault.message}`);
  }

  #give(fault: { fault: 'deadline' | 'idle' | 'aborted'; message: string }): void {
    this.#fault ??= fault;
    this.#controller.abort();
  }
}
