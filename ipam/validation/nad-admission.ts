import { joinKey } from '../../api/meta.js';
import type { AdmissionRequest, Answer } from '../../admission/review.js';
import { Reviewer } from '../../admission/reviewer.js';
import { shrinkNad } from '../../cluster/shrink.js';
import { warnOfMisspelling, warnOfUnreadable } from './nad-text.js';
import { isOurs, reviewNad } from './nads.js';
import { readNadObject } from './objects.js';
import { type ValidationAdmissionOptions, refuseResource, report } from './report.js';

const NADS = 'k8s.cni.cncf.io/v1/network-attachment-definitions';

/** Answers reviews of NADs. Never stands in the way of those that are somebody else's, nor, by a fault of ours, of any. */
export class NadAdmission {
  readonly #options: ValidationAdmissionOptions;
  readonly #reviewer: Reviewer;

  constructor(options: ValidationAdmissionOptions) {
    this.#options = options;
    this.#reviewer = new Reviewer({
      ...options,
      subject: 'the network',
      decide: (request) => this.#decide(request),
      onFault: unchecked,
    });
  }

  /**
   * @param body parsed JSON
   * @returns the body of the answer; what cannot be judged is allowed: pool and NAD show later what is wrong
   * @throws {ReviewError} where there is nothing that could be answered
   */
  answer(body: unknown): Promise<string> {
    return this.#reviewer.answer(body);
  }

  async #decide({ operation, resource, namespace, object, oldObject }: AdmissionRequest): Promise<Answer> {
    if (resource !== NADS) return refuseResource(resource, NADS);
    if (operation !== 'CREATE' && operation !== 'UPDATE') return { allowed: true };
    const written = readNadObject(object, 'request.object', namespace);
    const nad = shrinkNad(written);
    if (!isOurs(nad)) return { allowed: true, warnings: warnOfUnreadable(written) };
    const oldNad =
      operation === 'UPDATE' ? shrinkNad(readNadObject(oldObject, 'request.oldObject', namespace)) : undefined;
    const missing = await this.#options.filled();
    if (missing !== undefined) return unchecked(`Holdfast's IPAM is not ready to review networks: ${missing}`);
    const subject = `NetworkAttachmentDefinition ${joinKey(namespace, nad.metadata.name)}`;
    const { refusals, warnings } = reviewNad({ nad, oldNad }, this.#options.view);
    const verdict = { refusals, warnings: [...warnOfMisspelling(written), ...warnings] };
    return report({ operation, subject, verdict }, this.#options);
  }
}

function unchecked(reason: string): Answer {
  return { allowed: true, warnings: [`not checked: ${reason}`] };
}
