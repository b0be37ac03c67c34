import { joinKey } from '../api/meta.js';
import type { Clock } from '../kube/clock.js';
import { messageOf } from '../kube/errors.js';
import type { Logger } from '../kube/log.js';
import { MalformedPodError, readPod } from './launcher-pod.js';
import type { Lookup } from './lookup.js';
import type { WebhookMetrics } from './metrics.js';
import type { PodReview, Verdict } from './pod-mutation.js';
import { type AdmissionRequest, type Answer, readReview, writeReview } from './review.js';

export interface AdmissionOptions {
  lookup: Pick<Lookup, 'review'>;
  log: Logger;
  metrics: WebhookMetrics;
  clock: Clock;
}

/** Answers admission reviews of pods. */
export class Admission {
  readonly #options: AdmissionOptions;

  constructor(options: AdmissionOptions) {
    this.#options = options;
  }

  /**
   * @param body parsed JSON
   * @returns the body of the answer; a fault of ours is a refusal, so that it cannot pass for a pod that is right
   * @throws {ReviewError} where there is nothing that could be answered
   */
  async answer(body: unknown): Promise<string> {
    const request = readReview(body);
    const { log, metrics, clock } = this.#options;
    const began = clock.now();
    let answer: Answer;
    try {
      answer = await this.#decide(request);
    } catch (error) {
      log.error({ err: error, namespace: request.namespace, uid: request.uid }, `review failed: ${messageOf(error)}`);
      const reason = `Holdfast failed to review the pod (${messageOf(error)}): see the log of its webhook`;
      answer = { allowed: false, reason, code: 500 };
    }
    metrics.reviewed(operationLabel(request), resultOf(answer), (clock.now() - began) / 1000);
    return writeReview(request.uid, answer);
  }

  async #decide(request: AdmissionRequest): Promise<Answer> {
    const { operation, resource, object, oldObject } = request;
    // nothing is set at other times, and what would block a deletion must not be here
    if (operation !== 'CREATE' && operation !== 'UPDATE') return { allowed: true };
    if (resource !== 'v1/pods') {
      return {
        allowed: false,
        reason: `${resource} is sent to a webhook for v1/pods: correct its configuration`,
        code: 400,
      };
    }
    try {
      const pod = readPod(object, 'request.object');
      const oldPod = operation === 'UPDATE' ? readPod(oldObject, 'request.oldObject') : undefined;
      const review: PodReview = { operation, namespace: request.namespace, pod, oldPod };
      const verdict = await this.#options.lookup.review(review);
      return this.#report(review, verdict);
    } catch (error) {
      if (!(error instanceof MalformedPodError)) throw error;
      return { allowed: false, reason: error.message, code: 400 };
    }
  }

  #report({ operation, namespace, pod }: PodReview, verdict: Verdict): Answer {
    const { log, metrics } = this.#options;
    const subject = { operation, pod: joinKey(namespace, pod.metadata.name) };
    if (!verdict.allowed) {
      const { check, reason } = verdict;
      log.info({ ...subject, check }, `denied: ${reason}`);
      metrics.denied(check);
      return { allowed: false, reason, code: check === 'annotation' ? 400 : 403 };
    }
    const { patch, warnings } = verdict;
    const noted = warnings.length > 0 ? { warnings } : {};
    const [change] = patch;
    if (change !== undefined) log.info({ ...subject, networks: change.value, ...noted }, 'pointed at its claims');
    else log.debug({ ...subject, ...noted }, 'allowed as it is');
    return { allowed: true, patch, warnings };
  }
}

/** Labels come from outside: only known ones become label values. */
function operationLabel({ operation }: AdmissionRequest): string {
  return operation === 'CREATE' || operation === 'UPDATE' ? operation : 'other';
}

function resultOf(answer: Answer): 'allowed' | 'patched' | 'denied' | 'failed' {
  if (!answer.allowed) return answer.code === 500 ? 'failed' : 'denied';
  return answer.patch?.length ? 'patched' : 'allowed';
}
