import { type KubeObject, isBeingDeleted } from '../../api/meta.js';
import { type Backoff, backoff } from '../../kube/retry.js';
import type { Clock, Random } from '../../kube/clock.js';
import { CniCode, CniError } from './cni-error.js';

export type YieldWorker = (wait: () => Promise<void>) => Promise<void>;

/** The limits of the work on one request. */
export interface RequestContext {
  /** Aborts when time is up, and when the agent stops. */
  readonly signal: AbortSignal;
  /** Waits without occupying a worker, so that other requests can run. Absent if the caller does not use workers. */
  readonly yieldWorker?: YieldWorker;
}

/** Waits without a worker, if the request has one. @throws what the wait throws */
export async function waitIdle({ yieldWorker }: RequestContext, wait: () => Promise<void>): Promise<void> {
  await (yieldWorker === undefined ? wait() : yieldWorker(wait));
}

export interface BoundedWaitDeps {
  readonly pods: { get(uid: string): KubeObject | undefined };
  readonly clock: Clock;
  readonly random: Random;
}

/** After this time, a live read of an ADD has failed: there is still time for an answer from earlier reads. */
export const LIVE_READ_MS = 3_000;

/** Most waits end after a few of these. */
const BASE_DELAY_MS = 50;
const MAX_DELAY_MS = 1_000;

/** Waits between attempts with back-off, until the request's time is up or the pod is being deleted. */
export class BoundedWait {
  readonly #deps: BoundedWaitDeps;
  readonly #podUid: string;
  readonly #call: RequestContext;
  readonly #backoff: Backoff;

  constructor(deps: BoundedWaitDeps, podUid: string, call: RequestContext) {
    this.#deps = deps;
    this.#podUid = podUid;
    this.#call = call;
    this.#backoff = backoff({ baseMs: BASE_DELAY_MS, maxMs: MAX_DELAY_MS, random: deps.random });
  }

  /** Waits once. @throws {CniError} 11 with the reason of the wait, if the wait must end */
  async pause(reason: string): Promise<void> {
    await waitIdle(this.#call, () => this.#deps.clock.sleep(this.#backoff.next(), this.#call.signal));
    this.#check(reason);
  }

  /** Begins with short waits again, because something has changed. Does not wait itself. @throws {CniError} 11, as {@link pause} */
  restart(reason: string): void {
    this.#backoff.reset();
    this.#check(reason);
  }

  #check(reason: string): void {
    if (this.#call.signal.aborted) throw new CniError(CniCode.TryAgain, `${reason}; timeout: the kubelet retries`);
    const pod = this.#deps.pods.get(this.#podUid);
    // the deletion of the pod waits for this answer
    if (pod !== undefined && isBeingDeleted(pod))
      throw new CniError(CniCode.TryAgain, `${reason}; the pod is being deleted`);
  }
}
