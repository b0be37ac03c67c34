import { joinKey } from '../../api/meta.js';
import type { AdmissionRequest, AdmissionResponse } from '../../admission/review.js';
import { Reviewer } from '../../admission/reviewer.js';
import { transformNad } from '../../cluster/transforms.js';
import { warnOfMisspelledFlag, warnOfUnreadableConfig } from './nad-config-warnings.js';
import { delegatesToHoldfast, reviewNad } from './nad-review.js';
import { readNadObject } from './reviewed-objects.js';
import { type ValidationAdmissionOptions, denyResource, answerReview } from './review-answer.js';

const NAD_RESOURCE = 'k8s.cni.cncf.io/v1/network-attachment-definitions';

/**
 * Creates the reviewer of NADs. It never rejects NADs of other IPAMs and, if it fails itself, no NAD at all: pool and NAD show later what is wrong.
 */
export function createNadReviewer(options: ValidationAdmissionOptions): Reviewer {
  const decideOn = (request: AdmissionRequest) => decide(request, options);
  return new Reviewer({
    ...options,
    subject: 'the network',
    component: 'holdfast-ipam',
    decide: decideOn,
    onFault: allowUnchecked,
  });
}

async function decide(
  { operation, resource, namespace, object, oldObject }: AdmissionRequest,
  options: ValidationAdmissionOptions,
): Promise<AdmissionResponse> {
  if (resource !== NAD_RESOURCE) return denyResource(resource, NAD_RESOURCE);
  if (operation !== 'CREATE' && operation !== 'UPDATE') return { allowed: true };
  const written = readNadObject(object, 'request.object', namespace);
  const nad = transformNad(written);
  if (!delegatesToHoldfast(nad)) return { allowed: true, warnings: warnOfUnreadableConfig(written) };
  const oldNad =
    operation === 'UPDATE' ? transformNad(readNadObject(oldObject, 'request.oldObject', namespace)) : undefined;
  const missing = await options.waitForSync();
  if (missing !== undefined) return allowUnchecked(`Holdfast's IPAM is not ready to review networks: ${missing}`);
  const subject = `NetworkAttachmentDefinition ${joinKey(namespace, nad.metadata.name)}`;
  const { refusals, warnings } = reviewNad({ nad, oldNad }, options.view);
  const result = { refusals, warnings: [...warnOfMisspelledFlag(written), ...warnings] };
  return answerReview({ operation, subject, result }, options);
}

function allowUnchecked(reason: string): AdmissionResponse {
  return { allowed: true, warnings: [`not checked: ${reason}`] };
}
