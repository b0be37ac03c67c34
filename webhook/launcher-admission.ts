import { joinKey } from '../api/meta.js';
import { controllingVmi } from '../api/pod.js';
import type { Clock } from '../kube/clock.js';
import type { Logger } from '../kube/log.js';
import type { AdmissionRequest, AdmissionResponse } from '../admission/review.js';
import { Reviewer } from '../admission/reviewer.js';
import { MalformedPodError, readPod } from './reviewed-pod.js';
import type { KubeVirtControllerSource } from '../cluster/kubevirt-controller.js';
import type { PodReviewer } from './pod-reviewer.js';
import type { WebhookMetrics } from './metrics.js';
import type { PodReview, PodDecision } from './pod-mutation.js';

export interface LauncherAdmissionOptions {
  lookup: Pick<PodReviewer, 'review'>;
  kubevirt: KubeVirtControllerSource;
  log: Logger;
  metrics: WebhookMetrics;
  clock: Clock;
}

/** Answers admission reviews of pods. */
export class LauncherAdmission {
  readonly #options: LauncherAdmissionOptions;
  readonly #reviewer: Reviewer;

  constructor(options: LauncherAdmissionOptions) {
    this.#options = options;
    const { log, metrics, clock } = options;
    this.#reviewer = new Reviewer({
      subject: 'the pod',
      decide: (request) => this.#decide(request),
      log,
      metrics,
      clock,
    });
  }

  /**
   * @param body parsed JSON
   * @returns the body of the answer; a fault of ours is a refusal, so that it cannot pass for a pod that is right
   * @throws {ReviewError} where there is nothing that could be answered
   */
  answer(body: unknown): Promise<string> {
    return this.#reviewer.answer(body);
  }

  async #decide(request: AdmissionRequest): Promise<AdmissionResponse> {
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
      const requester = { username: request.username, kubevirt: this.#options.kubevirt.controller() };
      const review: PodReview = { operation, namespace: request.namespace, pod, oldPod, requester };
      const verdict = await this.#options.lookup.review(review);
      return this.#report(review, verdict);
    } catch (error) {
      if (!(error instanceof MalformedPodError)) throw error;
      return { allowed: false, reason: error.message, code: 400 };
    }
  }

  #report({ operation, namespace, pod }: PodReview, verdict: PodDecision): AdmissionResponse {
    const { log, metrics } = this.#options;
    const subject = { operation, pod: joinKey(namespace, pod.metadata.name) };
    if (!verdict.allowed) {
      const { check, reason } = verdict;
      // refusals name no UIDs
      log.info({ ...subject, check, vmiUid: controllingVmi(pod)?.uid }, `denied: ${reason}`);
      metrics.denied(check);
      return { allowed: false, reason, code: check === 'annotation' ? 400 : 403 };
    }
    const { patch, warnings } = verdict;
    const noted = warnings.length > 0 ? { warnings } : {};
    const change = patch.find(({ op }) => op === 'replace');
    if (change !== undefined) log.info({ ...subject, networks: change.value, ...noted }, 'pointed at its claims');
    else if (patch.length > 0) log.warn({ ...subject, ...noted }, 'marked with its creator');
    else log.debug({ ...subject, ...noted }, 'allowed as it is');
    return { allowed: true, patch, warnings };
  }
}
