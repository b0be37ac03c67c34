import { asRecord } from '../api/json.js';
import { joinKey } from '../api/meta.js';
import type { Clock } from '../kube/clock.js';
import type { Logger } from '../kube/log.js';
import type { AdmissionMetrics } from '../admission/metrics.js';
import { type AdmissionRequest, type AdmissionResponse, MalformedObjectError, Reviewer } from '../admission/review.js';
import type { PoolDirectory } from '../addressing/directory/directory.js';
import type { ParsedNad } from '../cluster/transforms.js';
import { type CapacityReview, type CapacityContext, reviewCapacity } from './capacity-requests.js';
import { readPod } from './reviewed-pod.js';
import type { PodReviewer } from './pod-reviewer.js';

interface CapacityAdmissionOptions {
  podReviewer: Pick<PodReviewer, 'decideWithRechecks'>;
  /** Absent if the gate PublishCapacity is closed: pods get no requests then. */
  publishedPool?: CapacityContext['publishedPool'];
  log: Logger;
  metrics: Pick<AdmissionMetrics, 'reviewed'>;
  clock: Clock;
}

/** Answers admission reviews of pods that need addresses. It refuses none: without a request, the scheduler does not count the pod. */
export class CapacityAdmission extends Reviewer {
  readonly #options: CapacityAdmissionOptions;

  constructor(options: CapacityAdmissionOptions) {
    const { log, metrics, clock } = options;
    super({
      subject: 'the pod',
      component: 'holdfast-webhook',
      decide: (request) => this.#decide(request),
      onFault: (reason) => ({ allowed: true, warnings: [reason] }),
      log,
      metrics,
      clock,
    });
    this.#options = options;
  }

  async #decide({ operation, resource, namespace, object }: AdmissionRequest): Promise<AdmissionResponse> {
    const { podReviewer, publishedPool, log } = this.#options;
    if (publishedPool === undefined || operation !== 'CREATE' || resource !== 'v1/pods') return { allowed: true };
    try {
      const pod = readPod(object, 'request.object');
      const review: CapacityReview = { namespace, pod, spec: asRecord(object).spec };
      const { patch, warnings } = await podReviewer.decideWithRechecks(namespace, (view) =>
        reviewCapacity(review, { view, publishedPool }),
      );
      const subject = { pod: joinKey(namespace, pod.metadata.name) };
      if (patch.length > 0) log.debug({ ...subject, patch }, 'added requests for its addresses');
      return { allowed: true, patch, warnings };
    } catch (error) {
      if (!(error instanceof MalformedObjectError)) throw error;
      return { allowed: true, warnings: [`the scheduler does not count the addresses of this pod: ${error.message}`] };
    }
  }
}

/** Returns a function that finds the pool of a NAD's network for a namespace, if nodes show its capacity. */
export function findPublishedPool(
  directory: Pick<PoolDirectory, 'resolveUser'>,
  networks: { get(key: string): ParsedNad | undefined },
): CapacityContext['publishedPool'] {
  return (namespace, nad) => {
    const config = networks.get(nad)?.config;
    if (config?.ok !== true) return undefined;
    const serving = directory.resolveUser({ namespace, network: config.network.name, nad });
    return serving.kind === 'served' && serving.pool.publishesCapacity ? serving.pool.name : undefined;
  };
}
