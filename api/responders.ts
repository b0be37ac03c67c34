import type { Delivery } from './networks/nad-guests.js';
import { describeValue } from './json.js';
import type { ObjectMeta } from './meta.js';
import { RESPONDERS_NAMESPACE, shortHash } from './names.js';
import type { NetworkConfig } from './networks/network-attachment.js';

/** A NAD that `spec.guest.attachment` of a pool names. */
interface Attachment {
  readonly config: NetworkConfig;
  readonly delivery: Delivery;
}

/** Returns why responders of a network cannot be attached by the NAD, as a clause about it. */
export function attachmentProblem(nad: Attachment | undefined, network: string): string | undefined {
  if (nad === undefined) return 'does not exist: create it';
  const { config, delivery } = nad;
  if (!config.ok) return `is invalid: ${config.problem.field} ${config.problem.message}`;
  const { name } = config.network;
  if (name !== network) return `is for network ${describeValue(name)}, not ${describeValue(network)}`;
  if (delivery.kind === 'cni') return 'has an ipam, so the kernel would answer for the addresses: remove it';
  return delivery.kind === 'none' ? `cannot attach them: ${delivery.why}` : undefined;
}

/** The name of the StatefulSet of a pool. Another pool of the same name later gets another one. */
export function responderSetName({ uid }: { readonly uid: string }): string {
  return `holdfast-responder-${shortHash(uid, 8)}`;
}

const RESPONDER_CLAIM_NAME = /^holdfast-responder-[0-9a-f]{8}-[0-9]$/;

/** True for the claim by which a responder has its own addresses: `guest` creates and deletes it. Administrators may create others in the namespace. */
export function isResponderClaim({ namespace, name }: Pick<ObjectMeta, 'namespace' | 'name'>): boolean {
  return namespace === RESPONDERS_NAMESPACE && RESPONDER_CLAIM_NAME.test(name);
}
