import { Deadline, abortable } from '../../kube/transport/deadline.js';
import type { Clock } from '../../kube/clock.js';
import { StatusError, TransportError, messageOf } from '../../kube/errors.js';
import type { Logger } from '../../kube/log.js';
import { asReadError, CniCode, CniError } from './cni-error.js';
import type { RequestMetrics } from './metrics.js';
import type { PendingDeletes, PendingDelete } from './pending-deletes.js';
import {
  type CniRequest,
  type InterfaceRef,
  type PluginRequest,
  CNI_COMMANDS,
  readCniRequest,
  readPluginRequest,
  sandboxInterfaceKey,
} from './request.js';
import type { YieldWorker } from './request-context.js';
import { type PluginResponse, type VerbOutcome, failure, success } from './result.js';
import type { Verbs } from './verbs.js';

interface DispatcherOptions {
  readonly verbs: Pick<Verbs, 'perform' | 'delete'>;
  readonly pendingDeletes: Pick<PendingDeletes, 'has' | 'write'>;
  /** Called after a DEL was stored as a pending delete. */
  readonly onPendingDelete: () => void;
  /** The maximum number of requests that run at the same time. */
  readonly workers: number;
  readonly addTimeoutMs: number;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: RequestMetrics;
}

/** A slow API server must not delay the end of a pod. A DEL that takes longer becomes a pending delete. */
const DEL_MS = 10_000;
const DEFAULT_MS = 30_000;
/** Cancelled work gets this time to fail with its own message, which is more precise than the one given here. */
const ABORT_GRACE_MS = 1_000;

/** Runs requests for one interface one after the other, bounds their time, and always answers with a CNI code. */
export class Dispatcher {
  readonly #options: DispatcherOptions;
  readonly #queue: RequestQueue;

  constructor(options: DispatcherOptions) {
    this.#options = options;
    this.#queue = new RequestQueue(options.workers);
  }

  /** Answers the text of one request. Never rejects. @param caller aborts when the caller no longer waits */
  async answer(text: string, caller: AbortSignal): Promise<PluginResponse> {
    const { clock, metrics } = this.#options;
    const started = clock.now();
    let ask: PluginRequest | undefined;
    let code = 0;
    metrics.began();
    try {
      ask = readPluginRequest(text);
      const request = readCniRequest(ask);
      const outcome = await this.#perform(request, caller);
      this.#logDone(request, outcome);
      return success(outcome);
    } catch (error) {
      const refusal = cniErrorOf(error);
      ({ code } = refusal);
      this.#logRefused(refusal, ask);
      return failure(refusal, ask?.config);
    } finally {
      const command = CNI_COMMANDS.find((each) => each === ask?.env.CNI_COMMAND) ?? 'unknown';
      metrics.ended(command, code, (clock.now() - started) / 1000);
    }
  }

  /** Carries out a pending delete, queued with the requests for the same interface. @throws errors of the API client */
  async retryDelete({ target }: PendingDelete, caller: AbortSignal): Promise<void> {
    await this.#withDeadline(DEL_MS, caller, (signal) =>
      this.#queue.run(sandboxInterfaceKey(target), signal, async () => {
        // an ADD may have carried it out in the meantime
        if (await this.#options.pendingDeletes.has(target)) await this.#options.verbs.delete(target, { signal });
      }),
    );
  }

  async #perform(request: CniRequest, caller: AbortSignal): Promise<VerbOutcome> {
    const { verbs } = this.#options;
    const work = (limitMs: number, key?: string) =>
      this.#withDeadline(limitMs, caller, (signal) =>
        this.#queue.run(key, signal, (rest) => verbs.perform(request, { signal, yieldWorker: rest })),
      );
    switch (request.command) {
      case 'ADD':
        return work(this.#options.addTimeoutMs, sandboxInterfaceKey(request));
      case 'CHECK':
        return work(DEFAULT_MS, sandboxInterfaceKey(request));
      case 'GC':
      case 'STATUS':
      case 'VERSION':
        return work(DEFAULT_MS);
      case 'DEL':
        try {
          return await work(DEL_MS, sandboxInterfaceKey(request));
        } catch (error) {
          await this.#storePending(request, error);
          return {};
        }
    }
  }

  /** Stores a failed DEL as a pending delete, so that the end of the pod is not delayed. */
  async #storePending(at: InterfaceRef, why: unknown): Promise<void> {
    const { pendingDeletes, log, onPendingDelete } = this.#options;
    let isNoted: boolean;
    try {
      isNoted = await pendingDeletes.write(at);
    } catch (error) {
      const message = `cannot release the addresses now (${messageOf(why)}), and cannot store the pending delete (${messageOf(error)}): the kubelet retries`;
      throw new CniError(CniCode.TryAgain, message, { cause: why });
    }
    const { containerId, interfaceName } = at;
    const fields = { containerId, interfaceName, err: why };
    if (!isNoted) {
      const reason = 'too many pending deletes: the agent releases the addresses after the pod is deleted';
      log.error(fields, `${reason}: ${messageOf(why)}`);
      return;
    }
    log.warn(fields, `stored a pending delete, because the addresses cannot be released now: ${messageOf(why)}`);
    onPendingDelete();
  }

  async #withDeadline<T>(limitMs: number, caller: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const { clock } = this.#options;
    const deadline = new Deadline(clock, caller);
    deadline.limit(limitMs, 'deadline');
    const over = new AbortController();
    const timedOut = this.#rejectAfter(deadline, limitMs, over.signal);
    try {
      return await Promise.race([work(deadline.signal), timedOut]);
    } catch (error) {
      // the reason of an abort is not a message for users
      if (deadline.signal.aborted && !(error instanceof CniError)) throw deadlineError(deadline, limitMs);
      throw error;
    } finally {
      over.abort();
      deadline.clear();
    }
  }

  /** Rejects some time after the deadline. Work that ignores the abort keeps its place in the queue. */
  async #rejectAfter(deadline: Deadline, limitMs: number, over: AbortSignal): Promise<never> {
    const { clock } = this.#options;
    await new Promise<void>((resolve) => {
      if (deadline.signal.aborted) resolve();
      else deadline.signal.addEventListener('abort', () => resolve(), { once: true });
    });
    await clock.sleep(ABORT_GRACE_MS, over);
    throw deadlineError(deadline, limitMs);
  }

  #logDone(request: CniRequest, { result, guard }: VerbOutcome): void {
    const { log } = this.#options;
    const { command } = request;
    const at =
      'containerId' in request ? { containerId: request.containerId, interfaceName: request.interfaceName } : {};
    if (request.command !== 'ADD') log.debug({ command, ...at }, 'request done');
    else
      log.info(
        { command, ...at, network: request.network, pod: request.pod, result, guard: guard?.mode },
        'addresses assigned',
      );
  }

  #logRefused(refusal: CniError, ask: PluginRequest | undefined): void {
    const { log } = this.#options;
    const env = ask?.env ?? {};
    const { CNI_COMMAND: command, CNI_CONTAINERID: containerId, CNI_IFNAME: interfaceName, CNI_ARGS: args } = env;
    const fields = { command, containerId, interfaceName, args, code: refusal.code };
    const { message, details, cause } = refusal;
    if (refusal.code === CniCode.Internal) log.error({ ...fields, err: cause }, `request failed: ${message}`);
    else log.warn({ ...fields, details }, `request refused: ${message}`);
  }
}

function deadlineError(deadline: Deadline, limitMs: number): CniError {
  const reason =
    deadline.error('the request')?.fault === 'aborted'
      ? 'the caller ended the request before the agent had finished it'
      : `the agent did not finish the request within ${limitMs} ms; see its log`;
  return new CniError(CniCode.TryAgain, `${reason}: the kubelet retries`);
}

function cniErrorOf(error: unknown): CniError {
  if (error instanceof CniError) return error;
  if (error instanceof TransportError || error instanceof StatusError) return asReadError(error);
  return new CniError(CniCode.Internal, `internal error of the agent: ${messageOf(error)}; see the log of the agent`, {
    cause: error,
  });
}

/** A request that waits for a worker. */
interface QueuedRequest {
  go(): void;
}

/** Runs work on one key one after the other, in order of arrival, and work on all keys with a limited number of workers. */
export class RequestQueue {
  readonly #last = new Map<string, Promise<void>>();
  readonly #waiting = new Set<QueuedRequest>();
  #free: number;

  constructor(workers: number) {
    this.#free = workers;
  }

  /**
   * Runs the work once its key and a worker are free.
   * @param key undefined for work that needs no order
   * @throws the signal's reason if it aborts before the work begins; after that the work itself must watch the signal
   */
  async run<T>(key: string | undefined, signal: AbortSignal, work: (rest: YieldWorker) => Promise<T>): Promise<T> {
    if (key === undefined) return this.#withWorker(signal, work);
    const before = this.#last.get(key);
    let leave: () => void = () => undefined;
    const mine = new Promise<void>((resolve) => (leave = resolve));
    // cancelled work must not change the order of the others
    const last = before === undefined ? mine : before.then(() => mine);
    this.#last.set(key, last);
    void last.then(() => {
      if (this.#last.get(key) === last) this.#last.delete(key);
    });
    try {
      if (before !== undefined) await abortable(before, signal);
      return await this.#withWorker(signal, work);
    } finally {
      leave();
    }
  }

  async #withWorker<T>(signal: AbortSignal, work: (rest: YieldWorker) => Promise<T>): Promise<T> {
    await this.#acquire(signal);
    const mine = { isWorking: true };
    const rest: YieldWorker = async (wait) => {
      mine.isWorking = false;
      this.#release();
      await wait();
      // after an abort the work only builds its error, which needs no worker
      mine.isWorking = await this.#acquire(signal).then(
        () => true,
        () => false,
      );
    };
    try {
      return await work(rest);
    } finally {
      if (mine.isWorking) this.#release();
    }
  }

  async #acquire(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.#free > 0) {
      this.#free--;
      return;
    }
    let waiter: QueuedRequest | undefined;
    const called = new Promise<void>((resolve) => this.#waiting.add((waiter = { go: resolve })));
    try {
      await abortable(called, signal);
    } catch (error) {
      // called and aborted at the same moment: pass the worker on
      if (waiter !== undefined && !this.#waiting.delete(waiter)) this.#release();
      throw error;
    }
  }

  #release(): void {
    const [next] = this.#waiting;
    if (next === undefined) {
      this.#free++;
      return;
    }
    this.#waiting.delete(next);
    next.go();
  }
}
