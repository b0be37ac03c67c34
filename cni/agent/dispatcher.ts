import { Deadline } from '../../kube/transport/deadline.js';
import type { Clock } from '../../kube/clock.js';
import { StatusError, TransportError, messageOf } from '../../kube/errors.js';
import type { Logger } from '../../kube/log.js';
import { asReadError, CniCode, CniError } from './cni-error.js';
import type { AgentMetrics } from './metrics.js';
import type { PendingDeletes, PendingDelete } from './pending-deletes.js';
import {
  type CniRequest,
  type DelRequest,
  type InterfaceRef,
  type PluginRequest,
  CNI_COMMANDS,
  readCniRequest,
  readPluginRequest,
  sandboxInterfaceKey,
} from './request.js';
import { type RequestContext, type YieldWorker, RequestQueue } from './request-queue.js';
import { type PluginResponse, type VerbOutcome, failure, success, answerVersionOf } from './result.js';
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
  readonly metrics: Pick<AgentMetrics, 'began' | 'ended'>;
}

/** A slow API server must not delay the end of a pod. A DEL that takes longer becomes a pending delete. The plugin waits 20 s. */
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
  answer(text: string, caller: AbortSignal): Promise<PluginResponse> {
    // not in an async function, which would keep the text while the request waits
    return this.#answer(readRequest(text), caller);
  }

  async #answer({ env, cniVersion, request }: ReadRequest, caller: AbortSignal): Promise<PluginResponse> {
    const { clock, metrics } = this.#options;
    const started = clock.now();
    let code = 0;
    metrics.began();
    try {
      if (request instanceof CniError) throw request;
      const outcome = await this.#perform(request, caller);
      this.#logDone(request, outcome);
      return success(outcome);
    } catch (error) {
      const refusal = cniErrorOf(error);
      ({ code } = refusal);
      this.#logRefused(refusal, env);
      return failure(refusal, cniVersion);
    } finally {
      const command = CNI_COMMANDS.find((each) => each === env.CNI_COMMAND) ?? 'unknown';
      metrics.ended(command, code, (clock.now() - started) / 1000);
    }
  }

  /** Carries out a pending delete, queued with the requests for the same interface. @throws errors of the API client */
  async retryDelete({ target }: PendingDelete, caller: AbortSignal): Promise<void> {
    await this.#inTurn(sandboxInterfaceKey(target), DEL_MS, caller, async ({ signal }) => {
      // an ADD may have carried it out in the meantime
      if (this.#options.pendingDeletes.has(target)) await this.#options.verbs.delete(target, { signal });
    });
  }

  async #perform(request: CniRequest, caller: AbortSignal): Promise<VerbOutcome> {
    const { verbs } = this.#options;
    const work = (limitMs: number, key?: string) =>
      this.#inTurn(key, limitMs, caller, (call) => verbs.perform(request, call));
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
        return this.#delete(request, caller);
    }
  }

  /** A DEL that fails becomes a pending delete before the next request for the interface begins: an ADD must find it. */
  async #delete(request: DelRequest, caller: AbortSignal): Promise<VerbOutcome> {
    let stored: Promise<VerbOutcome> | undefined;
    const store = (error: unknown) => (stored ??= this.#storePending(request, error));
    const { verbs } = this.#options;
    try {
      return await this.#withDeadline(DEL_MS, caller, (signal) => {
        const work = async (yieldWorker: YieldWorker) => {
          const outcome = await verbs.perform(request, { signal, yieldWorker });
          // it may be stored by now: a next ADD must find that, or the retry would release the address of the ADD
          signal.throwIfAborted();
          return outcome;
        };
        return this.#queue.run(sandboxInterfaceKey(request), signal, work, store);
      });
    } catch (error) {
      return store(error); // it ignores that its time is over
    }
  }

  /** Stores a failed DEL as a pending delete, so that the end of the pod is not delayed. */
  async #storePending(at: InterfaceRef, why: unknown): Promise<VerbOutcome> {
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
      return {};
    }
    log.warn(fields, `stored a pending delete, because the addresses cannot be released now: ${messageOf(why)}`);
    onPendingDelete();
    return {};
  }

  /** Runs work, within its time, when its key and a worker are free. */
  #inTurn<T>(
    key: string | undefined,
    limitMs: number,
    caller: AbortSignal,
    work: (call: RequestContext) => Promise<T>,
  ): Promise<T> {
    return this.#withDeadline(limitMs, caller, (signal) =>
      this.#queue.run(key, signal, (yieldWorker) => work({ signal, yieldWorker })),
    );
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
      if (deadline.signal.aborted) over.abort(); // it costs an exception
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

  #logRefused(refusal: CniError, env: PluginRequest['env']): void {
    const { log } = this.#options;
    const { CNI_COMMAND: command, CNI_CONTAINERID: containerId, CNI_IFNAME: interfaceName, CNI_ARGS: args } = env;
    const fields = { command, containerId, interfaceName, args, code: refusal.code };
    const { message, details, cause } = refusal;
    if (refusal.code === CniCode.Internal) log.error({ ...fields, err: cause }, `request failed: ${message}`);
    else log.warn({ ...fields, details }, `request refused: ${message}`);
  }
}

/** What is kept of a request while it waits: not its text, which a tenant can make long. */
interface ReadRequest {
  readonly env: PluginRequest['env'];
  /** For an error. */
  readonly cniVersion?: string;
  readonly request: CniRequest | CniError;
}

function readRequest(text: string): ReadRequest {
  let known: Pick<ReadRequest, 'env' | 'cniVersion'> = { env: {} };
  try {
    const ask = readPluginRequest(text);
    known = { env: ask.env, cniVersion: answerVersionOf(ask.config) };
    return { ...known, request: readCniRequest(ask) };
  } catch (error) {
    return { ...known, request: cniErrorOf(error) };
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
