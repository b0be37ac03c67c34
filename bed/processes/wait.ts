import { setTimeout as pause } from 'node:timers/promises';

/** Timeout and interval of a wait. */
export interface WaitOptions {
  timeoutMs?: number;
  /** The time between two probes. By default it grows with the time that has passed. */
  everyMs?: number;
  /** Ends the wait early, with the signal's reason as the error. */
  signal?: AbortSignal;
}

const DEFAULT_TIMEOUT_MS = 60_000;
/** A probe that reads from the API server costs milliseconds of CPU time there and here, and many tests wait for seconds. */
const [SHORTEST_PAUSE_MS, LONGEST_PAUSE_MS] = [50, 250];
const PAUSE_SHARE = 1 / 8;
/** Of a long value: the status of an object comes last. */
const [SHOWN_START, SHOWN_END] = [300, 1_500];
let patience = 1;

/** Multiplies the timeouts of all waits in this process. The demo shows what happens; how soon depends on what else the machine does. */
export function waitLonger(factor: number): void {
  patience = factor;
}

/**
 * Waits until the probe returns something other than undefined, null and false. If the probe throws, it is repeated.
 * @returns the result of the probe
 * @throws {Error} after `timeoutMs`, with the last result
 */
export async function until<T>(
  description: string,
  probe: () => Promise<T> | T,
  options: WaitOptions = {},
): Promise<Exclude<T, undefined | null | false>> {
  const { everyMs, signal } = options;
  const timeoutMs = patience * (options.timeoutMs ?? DEFAULT_TIMEOUT_MS);
  const started = Date.now();
  for (;;) {
    let seen: string;
    try {
      const value = await probe();
      if (isFound(value)) return value;
      seen = `last seen: ${String(value)}`;
    } catch (error) {
      seen = `last error: ${error instanceof Error ? error.message : String(error)}`;
    }
    signal?.throwIfAborted();
    const passedMs = Date.now() - started;
    if (passedMs >= timeoutMs) throw new Error(`waited ${timeoutMs} ms for ${description}; ${seen}`);
    await pause(everyMs ?? pauseAfter(passedMs));
  }
}

/**
 * Waits until a value satisfies `isRight`. The error shows the last value.
 * @returns the value
 */
export async function untilValue<T>(
  description: string,
  read: () => Promise<T> | T,
  isRight: (value: T) => boolean,
  options: WaitOptions = {},
): Promise<T> {
  const { value } = await until(
    description,
    async () => {
      const value = await read();
      if (!isRight(value)) throw new Error(`the value is ${show(value)}`);
      return { value };
    },
    options,
  );
  return value;
}

/** Returns the time until the next probe: an eighth of the time that has passed, within bounds. */
export function pauseAfter(passedMs: number): number {
  return Math.min(LONGEST_PAUSE_MS, Math.max(SHORTEST_PAUSE_MS, passedMs * PAUSE_SHARE));
}

function isFound<T>(value: T): value is Exclude<T, undefined | null | false> {
  return value !== undefined && value !== null && value !== false;
}

function show(value: unknown): string {
  // managedFields would fill the message before anything that says why
  const shown = (key: string, field: unknown): unknown => (key === 'managedFields' ? undefined : field);
  const text = value === undefined ? 'undefined' : JSON.stringify(value, shown);
  if (text.length <= SHOWN_START + SHOWN_END) return text;
  return `${text.slice(0, SHOWN_START)}…${text.slice(-SHOWN_END)}`;
}
