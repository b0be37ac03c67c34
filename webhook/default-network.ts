import { CLAIM_REFERENCE_KEY, DEFAULT_NETWORK_ANNOTATION } from '../api/names.js';
import type { Pod } from '../api/pod.js';
import { readSelections, refuseUnreadable } from './networks-annotation.js';
import { type PodRefusal, type PodReview, describePod } from './pod-decision.js';

/** A reference on the default network is refused: Holdfast does not serve the pod network, so its claim could only be that of another interface. */
export function refuseDefaultNetwork(review: PodReview, oldPod: Pod | undefined): PodRefusal | undefined {
  const value = review.pod.metadata.annotations?.[DEFAULT_NETWORK_ANNOTATION];
  if (value === undefined || value === oldPod?.metadata.annotations?.[DEFAULT_NETWORK_ANNOTATION]) return undefined;
  const selections = readSelections(value, review.namespace);
  if (typeof selections === 'string') return refuseUnreadable(DEFAULT_NETWORK_ANNOTATION, review, selections);
  const reference = selections.find(({ claimReference }) => claimReference !== undefined)?.claimReference;
  if (reference === undefined) return undefined;
  const reason =
    `annotation ${DEFAULT_NETWORK_ANNOTATION} of ${describePod(review)} has "${CLAIM_REFERENCE_KEY}" ${JSON.stringify(reference)}: ` +
    'persistent addresses are for secondary networks only; leave the key out';
  return { allowed: false, check: 'default-network', reason };
}
