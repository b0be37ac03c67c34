import type { Clock } from '../clock.js';
import { TransportError } from '../errors.js';

/** Resolves like the promise, unless the signal aborts first. @throws the signal's reason */
export async function abortable<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  if (signal.aborted) {
    // an unhandled rejection would end the process
    promise.catch(() => undefined);
    throw signal.reason as Error;
  }
  let onAbort: () => void = () => undefined;
  const aborted = new Promise<never>((_resolve, reject) => {
    onAbort = () => reject(signal.reason as Error);
    signal.addEventListener('abort', onAbort, { once: true });
  });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}

/** One signal that aborts when the caller aborts or the time is over. */
export class Deadline {
  readonly #controller = new AbortController();
  readonly #caller: AbortSignal | undefined;
  readonly #clock: Clock;
  readonly #onAbort: () => void;
  #cancelTimer: () => void = () => undefined;
  #abortIfOver: () => void = () => undefined;
  #fault: { fault: 'deadline' | 'idle' | 'aborted'; message: string } | undefined;

  constructor(clock: Clock, caller?: AbortSignal) {
    this.#clock = clock;
    this.#caller = caller;
    this.#onAbort = () => this.#give({ fault: 'aborted', message: 'aborted by the caller' });
    if (caller?.aborted) this.#onAbort();
    else caller?.addEventListener('abort', this.#onAbort, { once: true });
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Sets the time limit, which replaces an earlier one. */
  limit(ms: number, fault: 'deadline' | 'idle'): void {
    this.#cancelTimer();
    const message = fault === 'idle' ? `no data for ${ms} ms` : `no complete response within ${ms} ms`;
    const give = () => this.#give({ fault, message });
    const end = this.#clock.now() + ms;
    this.#cancelTimer = this.#clock.setTimer(ms, give);
    this.#abortIfOver = () => {
      if (this.#clock.now() >= end) give();
    };
  }

  /** Aborts if the time is over. When a paused process continues, it handles what its connections received before its timers. */
  confirm(): void {
    this.#abortIfOver();
  }

  /** Lifts the time limit. */
  pause(): void {
    this.#cancelTimer();
    this.#abortIfOver = () => undefined;
  }

  /** Resolves like `promise`, or rejects with the signal's reason if the signal aborts first. */
  race<T>(promise: Promise<T>): Promise<T> {
    return abortable(promise, this.#controller.signal);
  }

  /** Frees the timer and the listener. */
  clear(): void {
    this.#cancelTimer();
    this.#caller?.removeEventListener('abort', this.#onAbort);
  }

  /** Returns why the signal aborted, as an error about `request`; undefined if it has not. */
  error(request: string): TransportError | undefined {
    return this.#fault && new TransportError(this.#fault.fault, `${request}: ${this.#fault.message}`);
  }

  #give(fault: { fault: 'deadline' | 'idle' | 'aborted'; message: string }): void {
    this.#fault ??= fault;
    this.#controller.abort();
  }
}
