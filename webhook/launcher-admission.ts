import { joinKey } from '../api/meta.js';
import { LAUNCHER_CREATOR } from '../api/names.js';
import { controllingVmi } from '../api/pod.js';
import type { Clock } from '../kube/clock.js';
import type { Logger } from '../kube/log.js';
import { type AdmissionRequest, type AdmissionResponse, Reviewer } from '../admission/review.js';
import { annotationPath } from './networks-annotation.js';
import { readPod } from './reviewed-pod.js';
import type { KubeVirtControllerSource } from '../cluster/kubevirt-controller.js';
import type { PodReviewer } from './pod-reviewer.js';
import type { WebhookMetrics } from './metrics.js';
import type { PodDecision, PodReview } from './pod-decision.js';

const CREATOR_PATH = annotationPath(LAUNCHER_CREATOR);

interface LauncherAdmissionOptions {
  podReviewer: Pick<PodReviewer, 'review'>;
  kubevirt: KubeVirtControllerSource;
  log: Logger;
  metrics: WebhookMetrics;
  clock: Clock;
}

/** Answers admission reviews of launcher pods. An internal error refuses the pod. */
export class LauncherAdmission extends Reviewer {
  readonly #options: LauncherAdmissionOptions;
  /** Why no launcher gets addresses, as it was logged last. */
  #loggedCause = '';

  constructor(options: LauncherAdmissionOptions) {
    const { log, metrics, clock } = options;
    const decide = (request: AdmissionRequest) => this.#decide(request);
    super({ subject: 'the pod', component: 'holdfast-webhook', decide, log, metrics, clock });
    this.#options = options;
  }

  async #decide(request: AdmissionRequest): Promise<AdmissionResponse> {
    const { operation, resource, object, oldObject } = request;
    // no other operation changes a pod, and a refused DELETE would block deletions
    if (operation !== 'CREATE' && operation !== 'UPDATE') return { allowed: true };
    if (resource !== 'v1/pods') {
      return {
        allowed: false,
        reason: `the webhook for v1/pods received ${resource}: correct the MutatingWebhookConfiguration`,
        code: 400,
      };
    }
    const pod = readPod(object, 'request.object');
    const oldPod = operation === 'UPDATE' ? readPod(oldObject, 'request.oldObject') : undefined;
    const requester = { username: request.username, kubevirt: this.#options.kubevirt.controller() };
    const review: PodReview = { operation, namespace: request.namespace, pod, oldPod, requester };
    return this.#answerFor(review, await this.#options.podReviewer.review(review));
  }

  #answerFor({ operation, namespace, pod, requester }: PodReview, decision: PodDecision): AdmissionResponse {
    const { log, metrics } = this.#options;
    const subject = { operation, pod: joinKey(namespace, pod.metadata.name) };
    if (!decision.allowed) {
      const { check, reason, isUncertain } = decision;
      // reasons contain no UIDs, the log does
      log.info({ ...subject, check, vmiUid: controllingVmi(pod)?.uid }, `refused: ${reason}`);
      if (isUncertain) return { allowed: false, reason, code: 500 };
      metrics.denied(check);
      return { allowed: false, reason, code: check === 'annotation' ? 400 : 403 };
    }
    const { patch, warnings } = decision;
    const noted = warnings.length > 0 ? { warnings } : {};
    const changes = Object.fromEntries(patch.map(({ path, value }) => [path, value ?? null]));
    if (patch.some(({ path }) => path !== CREATOR_PATH)) {
      log.info({ ...subject, changes, ...noted }, 'set the claim references');
    } else if (patch.length > 0) {
      // one cause concerns every launcher: it is logged once
      const cause = requester.kubevirt.problem ?? '';
      const level = cause !== '' && cause === this.#loggedCause ? 'debug' : 'warn';
      this.#loggedCause = cause;
      log[level](
        { ...subject, ...noted },
        'recorded who created a launcher that gets no addresses of IPAMClaims: its warnings say why',
      );
    } else log.debug({ ...subject, ...noted }, 'allowed without changes');
    return { allowed: true, patch, warnings };
  }
}
