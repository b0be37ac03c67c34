import { type Backoff, backoff } from '../../kube/backoff.js';
import type { Clock, Random } from '../../kube/clock.js';
import { isBeingDeleted } from '../../api/meta.js';
import type { Attachment } from './attachment.js';
import type { RequestContext } from './request-context.js';
import { CniCode, CniError } from './cni-error.js';
import type { NodePods } from './pods/node-pods.js';

export interface BoundedWaitDeps {
  readonly pods: Pick<NodePods, 'get'>;
  readonly clock: Clock;
  readonly random: Random;
}

/** Most waits end after a few of these. */
const BASE_DELAY_MS = 50;
const MAX_DELAY_MS = 1_000;

/** Waits between attempts with back-off, until the request's time is up or the pod is being deleted. */
export class BoundedWait {
  readonly #deps: BoundedWaitDeps;
  readonly #uid: string;
  readonly #call: RequestContext;
  readonly #backoff: Backoff;

  constructor(deps: BoundedWaitDeps, { pod }: Pick<Attachment, 'pod'>, call: RequestContext) {
    this.#deps = deps;
    this.#uid = pod.metadata.uid;
    this.#call = call;
    this.#backoff = backoff({ baseMs: BASE_DELAY_MS, maxMs: MAX_DELAY_MS, random: deps.random });
  }

  /** Waits once. @throws {CniError} 11 with the reason of the wait, if the wait must end */
  async pause(reason: string): Promise<void> {
    const { signal, yieldWorker } = this.#call;
    const sleep = () => this.#deps.clock.sleep(this.#backoff.next(), signal);
    await (yieldWorker === undefined ? sleep() : yieldWorker(sleep));
    this.check(reason);
  }

  /** Checks without waiting. @throws {CniError} 11, as {@link pause} */
  check(reason: string): void {
    if (this.#call.signal.aborted) throw new CniError(CniCode.TryAgain, `${reason}; timeout: the kubelet retries`);
    const pod = this.#deps.pods.get(this.#uid);
    // the deletion of the pod waits for this answer
    if (pod !== undefined && isBeingDeleted(pod))
      throw new CniError(CniCode.TryAgain, `${reason}; the pod is being deleted`);
  }
}
