import type { ObjectMeta } from './meta.js';
import { RESPONDERS_NAMESPACE } from './names.js';

const RESPONDER_CLAIM_NAME = /^holdfast-responder-[0-9a-f]{8}-[0-9]$/;

/** True for the claim by which a responder has its own addresses: `guest` creates and deletes it. Administrators may create others in the namespace. */
export function isResponderClaim({ namespace, name }: Pick<ObjectMeta, 'namespace' | 'name'>): boolean {
  return namespace === RESPONDERS_NAMESPACE && RESPONDER_CLAIM_NAME.test(name);
}
