import { joinKey } from '../../api/meta.js';
import { type AdmissionRequest, type AdmissionResponse, Reviewer } from '../../admission/review.js';
import { FairSemaphoreError } from '../../kube/fair-semaphore.js';
import { type ParsedNad, transformNad } from '../../cluster/transforms.js';
import { delegatesToHoldfast, reviewNad } from './nad-review.js';
import { readNadObject } from './reviewed-objects.js';
import { type ValidationAdmissionOptions, denyResource, answerReview } from './review-answer.js';
import { HOLDFAST_IPAM, misspelledFlagProblems, unintendedLoss } from '../../api/ipam-delegation.js';
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
  const flagWarnings = warnOfPersistence(nad);
  if (!delegatesToHoldfast(nad))
    return { allowed: true, warnings: [...warnOfUnreadableConfig(written), ...flagWarnings] };
  const oldNad =
    operation === 'UPDATE' ? transformNad(readNadObject(oldObject, 'request.oldObject', namespace)) : undefined;
  const missing = await options.waitForSync();
  if (missing !== undefined) return allowUnchecked(`Holdfast's IPAM is not ready to review networks: ${missing}`);
  const subject = `NetworkAttachmentDefinition ${joinKey(namespace, nad.metadata.name)}`;
  const reviewed = await turns.run(namespace, () => reviewNad({ nad, oldNad }, options.view)).catch(describeFullQueue);
  if (typeof reviewed === 'string') return allowUnchecked(reviewed);
  const { refusals, warnings } = reviewed;
  const result = { refusals, warnings: [...flagWarnings, ...warnings] };
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

/** Warns of an unreadable config that names Holdfast. It is never rejected, because it is unknown which IPAM it is for. */
export function warnOfUnreadableConfig(nad: NetworkAttachmentDefinition): string[] {
  const config = readCniConfig(nad);
  if (config.ok || !String(nad.spec?.config).includes(`"${HOLDFAST_IPAM}"`)) return [];
  const { field, message } = config.problem;
  return [
    `${field} ${message}. It names "${HOLDFAST_IPAM}", but no workload gets an address from it until it is corrected`,
  ];
}

/** Warns of keys that are nearly the flag, and of its absence if nobody has decided that VMs lose their addresses. */
export function warnOfPersistence({ config, delegation }: Pick<ParsedNad, 'config' | 'delegation'>): string[] {
  if (!config.ok || delegation.kind === 'other') return [];
  const loss = unintendedLoss(config.network, delegation.kind);
  return [...new Set([...misspelledFlagProblems(config.network), ...(loss === undefined ? [] : [loss])])];
}
