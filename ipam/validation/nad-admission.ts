import { joinKey } from '../../api/meta.js';
import type { AdmissionRequest, AdmissionResponse } from '../../admission/review.js';
import { Reviewer } from '../../admission/reviewer.js';
import { transformNad } from '../../cluster/transforms.js';
import { warnOfMisspelledFlag, warnOfUnreadableConfig } from './nad-config-warnings.js';
import { delegatesToHoldfast, reviewNad } from './nad-review.js';
import { readNadObject } from './reviewed-objects.js';
import { type ValidationAdmissionOptions, denyResource, answerReview } from './review-answer.js';

const NAD_RESOURCE = 'k8s.cni.cncf.io/v1/network-attachment-definitions';

/** Answers reviews of NADs. It never rejects NADs of other IPAMs and, if it fails itself, no NAD at all. */
export class NadAdmission {
  readonly #options: ValidationAdmissionOptions;
  readonly #reviewer: Reviewer;

  constructor(options: ValidationAdmissionOptions) {
    this.#options = options;
    this.#reviewer = new Reviewer({
      ...options,
      subject: 'the network',
      decide: (request) => this.#decide(request),
      onFault: allowUnchecked,
    });
  }

  /**
   * @param body parsed JSON
   * @returns the body of the answer; what cannot be reviewed is allowed, because pool and NAD show later what is wrong
   * @throws {ReviewError} if there is nothing to answer
   */
  answer(body: unknown): Promise<string> {
    return this.#reviewer.answer(body);
  }

  async #decide({ operation, resource, namespace, object, oldObject }: AdmissionRequest): Promise<AdmissionResponse> {
    if (resource !== NAD_RESOURCE) return denyResource(resource, NAD_RESOURCE);
    if (operation !== 'CREATE' && operation !== 'UPDATE') return { allowed: true };
    const written = readNadObject(object, 'request.object', namespace);
    const nad = transformNad(written);
    if (!delegatesToHoldfast(nad)) return { allowed: true, warnings: warnOfUnreadableConfig(written) };
    const oldNad =
      operation === 'UPDATE' ? transformNad(readNadObject(oldObject, 'request.oldObject', namespace)) : undefined;
    const missing = await this.#options.waitForSync();
    if (missing !== undefined) return allowUnchecked(`Holdfast's IPAM is not ready to review networks: ${missing}`);
    const subject = `NetworkAttachmentDefinition ${joinKey(namespace, nad.metadata.name)}`;
    const { refusals, warnings } = reviewNad({ nad, oldNad }, this.#options.view);
    const verdict = { refusals, warnings: [...warnOfMisspelledFlag(written), ...warnings] };
    return answerReview({ operation, subject, result: verdict }, this.#options);
  }
}

function allowUnchecked(reason: string): AdmissionResponse {
  return { allowed: true, warnings: [`not checked: ${reason}`] };
}
