import { messageOf } from '../kube/errors.js';
import type { Clock } from '../kube/clock.js';
import type { Logger } from '../kube/log.js';
import type { Component } from './context.js';
import type { ReadinessCheck } from './probes.js';

/** Less than Kubernetes' default grace period of 30 s, so that the process ends before SIGKILL. */
const STOP_LIMIT_MS = 25_000;
const SIGNALS = ['SIGTERM', 'SIGINT'] as const;
const FAULTS = ['unhandledRejection', 'uncaughtException'] as const;

/** The part of Node's `process` that is used. */
export interface SignalSource {
  on(event: string, listener: (argument: unknown) => void): unknown;
  off(event: string, listener: (argument: unknown) => void): unknown;
}

export interface RunOptions {
  readonly components: readonly Component[];
  readonly log: Logger;
  readonly clock: Clock;
  readonly signals: SignalSource;
  /** Registers a function that ends the process because of an error. */
  readonly onFatal?: (fail: (error: unknown) => void) => void;
  /** Closes what the components share, after all of them have stopped. */
  readonly closeShared: () => Promise<void>;
  /** Serves the readiness checks while the process runs. */
  readonly serveChecks: (checks: readonly ReadinessCheck[]) => Promise<{ close(): Promise<void> }>;
}

/**
 * Runs components until a signal, an uncaught error or a component that cannot start, then stops all of them. A second signal, or a stop
 * of more than 25 s, ends the process at once.
 * @returns the exit code: 0 after a clean stop
 */
export async function runProcess(options: RunOptions): Promise<number> {
  const { components, log, clock, signals } = options;
  const ending = new ShutdownTrigger(signals, log);
  for (const each of [options, ...components]) each.onFatal?.(ending.fail);
  let stopping = false;
  const checks: ReadinessCheck[] = components.map((part) => ({
    name: part.name,
    run: () => part.ready?.(),
    notice: () => part.notice?.(),
  }));
  checks.push({ name: 'process', run: () => (stopping ? 'stopping' : undefined) });
  let served: { close(): Promise<void> } | undefined;
  try {
    served = await options.serveChecks(checks);
    // In parallel, because one may need long, such as a controller that waits for its lease.
    for (const part of components) void startComponent(part, log).catch((error: unknown) => ending.fail(error));
    await ending.firstReason;
  } catch (error) {
    ending.fail(error);
  }
  stopping = true;
  const stopped = stopAll(options).then(() => true);
  const limit = new AbortController();
  const late = clock.sleep(STOP_LIMIT_MS, limit.signal).then(() => false);
  const inTime = await Promise.race([stopped, late, ending.secondSignal.then(() => false)]);
  limit.abort();
  if (!inTime) log.error({}, 'some components did not stop in time');
  await served?.close();
  ending.unsubscribe();
  return inTime && !ending.failed ? 0 : 1;
}

async function startComponent(part: Component, log: Logger): Promise<void> {
  try {
    await part.start();
    log.info({ part: part.name }, 'started');
  } catch (error) {
    throw new Error(`${part.name} cannot start: ${messageOf(error)}`, { cause: error });
  }
}

async function stopAll({ components, log, closeShared }: RunOptions): Promise<void> {
  await Promise.all(components.map((part) => stopOne(part.name, () => part.stop(), log)));
  await stopOne('shared', closeShared, log);
}

/** A component that cannot stop must not block the others. */
async function stopOne(name: string, stop: () => Promise<void>, log: Logger): Promise<void> {
  try {
    await stop();
    log.info({ part: name }, 'stopped');
  } catch (error) {
    log.error({ part: name, err: error }, `cannot stop: ${messageOf(error)}`);
  }
}

/** Listens for signals and uncaught errors, which end the process. */
class ShutdownTrigger {
  /** Resolves at the first reason to stop. */
  readonly firstReason: Promise<void>;
  /** Resolves at a later signal. */
  readonly secondSignal: Promise<void>;
  failed = false;
  readonly #host: SignalSource;
  readonly #log: Logger;
  #begun = false;
  #resolveFirst: () => void = () => undefined;
  #resolveAgain: () => void = () => undefined;

  constructor(host: SignalSource, log: Logger) {
    this.#host = host;
    this.#log = log;
    this.firstReason = new Promise((resolve) => (this.#resolveFirst = resolve));
    this.secondSignal = new Promise((resolve) => (this.#resolveAgain = resolve));
    for (const signal of SIGNALS) host.on(signal, this.#hearSignal);
    for (const fault of FAULTS) host.on(fault, this.fail);
  }

  unsubscribe(): void {
    for (const signal of SIGNALS) this.#host.off(signal, this.#hearSignal);
    for (const fault of FAULTS) this.#host.off(fault, this.fail);
  }

  readonly fail = (error: unknown): void => {
    this.failed = true;
    this.#log.error({ err: error }, `stopping because of an error: ${messageOf(error)}`);
    this.#begin();
  };

  readonly #hearSignal = (signal: unknown): void => {
    this.#log.info({ signal }, this.#begun ? 'stopping at once' : 'stopping');
    if (this.#begun) this.#resolveAgain();
    else this.#begin();
  };

  #begin(): void {
    this.#begun = true;
    this.#resolveFirst();
  }
}
