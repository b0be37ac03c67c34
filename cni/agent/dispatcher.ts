import type { Clock } from '../../kube/clock.js';
import { Deadline } from '../../kube/deadline.js';
import { StatusError, TransportError, messageOf } from '../../kube/errors.js';
import type { Logger } from '../../kube/log.js';
import { asReadError } from './api-failure.js';
import { CniCode, CniError } from './cni-error.js';
import { COMMANDS } from './environment.js';
import { type PluginResponse, type PluginRequest, failure, readPluginRequest, success } from './plugin-protocol.js';
import type { RequestMetrics } from './metrics.js';
import type { PendingDeletes, PendingDelete } from './pending-deletes.js';
import { type InterfaceRef, type CniRequest, sandboxInterfaceKey, readCniRequest } from './request.js';
import { RequestQueue } from './request-queue.js';
import type { Verbs } from './verbs.js';

export interface DispatcherOptions {
  readonly verbs: Pick<Verbs, 'perform' | 'delete'>;
  readonly pendingDeletes: Pick<PendingDeletes, 'has' | 'write'>;
  /** A note was written. */
  readonly onPendingDelete: () => void;
  /** How many requests are worked on at once. */
  readonly workers: number;
  readonly addTimeoutMs: number;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: RequestMetrics;
}

/** A pod's end shall not wait for an API server that is slow: what is not released by then is noted. */
const DEL_MS = 10_000;
const DEFAULT_MS = 30_000;
/** Work that is given up says so itself, in better words than are known here. */
const ABORT_GRACE_MS = 1_000;

/** From the text of a request to that of its answer: in turn, in time, and whatever happens with a code. */
export class Dispatcher {
  readonly #options: DispatcherOptions;
  readonly #turns: RequestQueue;

  constructor(options: DispatcherOptions) {
    this.#options = options;
    this.#turns = new RequestQueue(options.workers);
  }

  /** Never rejects. @param caller aborts where nobody waits for the answer any more */
  async answer(text: string, caller: AbortSignal): Promise<PluginResponse> {
    const { clock, metrics } = this.#options;
    const started = clock.now();
    let ask: PluginRequest | undefined;
    let code = 0;
    metrics.began();
    try {
      ask = readPluginRequest(text);
      const request = readCniRequest(ask);
      const result = await this.#perform(request, caller);
      this.#logDone(request, result);
      return success(result);
    } catch (error) {
      const refusal = cniErrorOf(error);
      ({ code } = refusal);
      this.#logRefused(refusal, ask);
      return failure(refusal, ask);
    } finally {
      const command = COMMANDS.find((each) => each === ask?.env.CNI_COMMAND) ?? 'unknown';
      metrics.ended(command, code, (clock.now() - started) / 1000);
    }
  }

  /** Makes a noted deletion good, in turn with the requests for the same interface. @throws what the API server's client throws */
  async retryDelete({ target }: PendingDelete, caller: AbortSignal): Promise<void> {
    await this.#inTime(DEL_MS, caller, (signal) =>
      this.#turns.run(sandboxInterfaceKey(target), signal, async () => {
        // an ADD may have done it in the meantime
        if (await this.#options.pendingDeletes.has(target)) await this.#options.verbs.delete(target, { signal });
      }),
    );
  }

  async #perform(request: CniRequest, caller: AbortSignal): Promise<object | undefined> {
    const { verbs } = this.#options;
    const work = (limitMs: number, key?: string) =>
      this.#inTime(limitMs, caller, (signal) =>
        this.#turns.run(key, signal, (rest) => verbs.perform(request, { signal, yieldWorker: rest })),
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
          await this.#note(request, error);
          return undefined;
        }
    }
  }

  /** What could not be released now is promised: nobody can do more about a pod that ends. */
  async #note(at: InterfaceRef, why: unknown): Promise<void> {
    const { pendingDeletes, log, onPendingDelete } = this.#options;
    let isNoted: boolean;
    try {
      isNoted = await pendingDeletes.write(at);
    } catch (error) {
      const message = `cannot release the addresses now (${messageOf(why)}), nor note it: ${messageOf(error)}`;
      throw new CniError(CniCode.TryAgain, message, { cause: why });
    }
    const { containerId, interfaceName } = at;
    const fields = { containerId, interfaceName, err: why };
    if (!isNoted) {
      const reason = 'there are too many notes, so the addresses are released after the pod is gone';
      log.error(fields, `${reason}: ${messageOf(why)}`);
      return;
    }
    log.warn(fields, `addresses are released later: ${messageOf(why)}`);
    onPendingDelete();
  }

  async #inTime<T>(limitMs: number, caller: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const { clock } = this.#options;
    const deadline = new Deadline(clock, caller);
    deadline.limit(limitMs, 'deadline');
    const over = new AbortController();
    const outOfPatience = this.#outOfPatience(deadline, over.signal);
    try {
      return await Promise.race([work(deadline.signal), outOfPatience]);
    } catch (error) {
      // an abort has no words of its own
      if (deadline.signal.aborted && !(error instanceof CniError)) throw deadlineError(deadline);
      throw error;
    } finally {
      over.abort();
      deadline.clear();
    }
  }

  /** Rejects a while after the deadline. Work that does not hear of it keeps its turn. */
  async #outOfPatience(deadline: Deadline, over: AbortSignal): Promise<never> {
    const { clock } = this.#options;
    await new Promise<void>((resolve) => {
      if (deadline.signal.aborted) resolve();
      else deadline.signal.addEventListener('abort', () => resolve(), { once: true });
    });
    await clock.sleep(ABORT_GRACE_MS, over);
    throw deadlineError(deadline);
  }

  #logDone(request: CniRequest, result: object | undefined): void {
    const { log } = this.#options;
    const { command } = request;
    const at =
      'containerId' in request ? { containerId: request.containerId, interfaceName: request.interfaceName } : {};
    if (request.command !== 'ADD') log.debug({ command, ...at }, 'request done');
    else log.info({ command, ...at, network: request.network, pod: request.pod, result }, 'addresses given');
  }

  #logRefused(refusal: CniError, ask: PluginRequest | undefined): void {
    const { log } = this.#options;
    const {
      CNI_COMMAND: command,
      CNI_CONTAINERID: containerId,
      CNI_IFNAME: interfaceName,
      CNI_ARGS: args,
    } = ask?.env ?? {};
    const fields = { command, containerId, interfaceName, args, code: refusal.code };
    const { message, details, cause } = refusal;
    if (refusal.code === CniCode.Internal) log.error({ ...fields, err: cause }, `request failed: ${message}`);
    else log.warn({ ...fields, details }, `request refused: ${message}`);
  }
}

function deadlineError(deadline: Deadline): CniError {
  return new CniError(CniCode.TryAgain, `${deadline.error('the request')?.message ?? 'given up'}: try again`);
}

function cniErrorOf(error: unknown): CniError {
  if (error instanceof CniError) return error;
  if (error instanceof TransportError || error instanceof StatusError) return asReadError(error);
  return new CniError(CniCode.Internal, `the agent failed: ${messageOf(error)}: see its log`, { cause: error });
}
