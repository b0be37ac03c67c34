import { joinKey } from '../../api/meta.js';
import { type AdmissionRequest, type AdmissionResponse, Reviewer } from '../../admission/review.js';
import { FairSemaphoreError } from '../../kube/fair-semaphore.js';
import { transformNad } from '../../cluster/transforms.js';
import { delegatesToHoldfast, reviewNad } from './nad-review.js';
import { readNadObject } from './reviewed-objects.js';
import { type ValidationAdmissionOptions, denyResource, answerReview } from './review-answer.js';
import { HOLDFAST_IPAM } from '../../api/ipam-delegation.js';
import { isRecord } from '../../api/json.js';
import { type NetworkAttachmentDefinition, readCniConfig } from '../../api/network-attachment.js';
import { ReviewTurns } from './review-turns.js';

const NAD_RESOURCE = 'k8s.cni.cncf.io/v1/network-attachment-definitions';

/**
 * Creates the reviewer of NADs. It never rejects NADs of other IPAMs and, if it fails itself, no NAD at all: pool and NAD show later what is wrong.
 */
export function createNadReviewer(options: ValidationAdmissionOptions): Reviewer {
  const turns = new ReviewTurns(options.clock);
  const decideOn = (request: AdmissionRequest) => decide(request, turns, options);
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
  turns: ReviewTurns,
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
  const reviewed = await turns.run(namespace, () => reviewNad({ nad, oldNad }, options.view)).catch(describeFullQueue);
  if (typeof reviewed === 'string') return allowUnchecked(reviewed);
  const { refusals, warnings } = reviewed;
  const result = { refusals, warnings: [...warnOfMisspelledFlag(written), ...warnings] };
  return answerReview({ operation, subject, result }, options);
}

/** @throws any other error */
function describeFullQueue(error: unknown): string {
  if (error instanceof FairSemaphoreError) return error.message;
  throw error;
}

function allowUnchecked(reason: string): AdmissionResponse {
  return { allowed: true, warnings: [`not checked: ${reason}`] };
}

const FLAG = 'allowPersistentIPs';

/** Warns of an unreadable config that names Holdfast. It is never rejected, because it is unknown which IPAM it is for. */
export function warnOfUnreadableConfig(nad: NetworkAttachmentDefinition): string[] {
  const config = readCniConfig(nad);
  if (config.ok || !String(nad.spec?.config).includes(`"${HOLDFAST_IPAM}"`)) return [];
  const { field, message } = config.problem;
  return [
    `${field} ${message}. It names "${HOLDFAST_IPAM}", but no workload gets an address from it until it is corrected`,
  ];
}

/** Warns of keys that nothing reads, because they differ from the flag in upper and lower case. */
export function warnOfMisspelledFlag(nad: NetworkAttachmentDefinition): string[] {
  const config = readCniConfig(nad);
  if (!config.ok || config.value === undefined) return [];
  const { plugins } = config.value;
  const objects = [
    { path: 'spec.config', place: config.value as unknown },
    ...(Array.isArray(plugins) ? (plugins as unknown[]) : []).map((place, index) => ({
      path: `spec.config.plugins[${index}]`,
      place,
    })),
  ];
  return objects.flatMap(({ path, place }) =>
    misspelledFlags(place).map((key) => `${path}.${key} has no effect: write ${FLAG}, with exactly these capitals`),
  );
}

function misspelledFlags(object: unknown): string[] {
  if (!isRecord(object)) return [];
  return Object.keys(object).filter((key) => key !== FLAG && key.toLowerCase() === FLAG.toLowerCase());
}
