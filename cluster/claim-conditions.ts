import type { ClaimCondition, ReasonOf } from '../api/conditions.js';
import type { IPAMClaim } from '../api/ipam-claim.js';
import { type Condition, transitionTimeOf } from '../api/meta.js';
import type { Client } from '../kube/client.js';
import { IPAM_CLAIMS } from '../kube/resources.js';

/** Conditions of a claim. Several processes write them, each its own types, with the version of the claim as the precondition. */

/** The part of a condition that does not depend on the time of the write. */
export type ConditionValue = Pick<Condition, 'status' | 'reason' | 'message'>;
/** The same with a reason that the documents explain. */
export type ConditionOf<Type extends ClaimCondition> = ConditionValue & { reason: ReasonOf<Type> };

/** The conditions of one writer by type. Undefined: the claim must not have it. */
export type DesiredConditions = Readonly<Record<string, ConditionValue | undefined>>;

export function conditionOf(claim: IPAMClaim, type: string): Condition | undefined {
  return claim.status?.conditions?.find((found) => found.type === type);
}

/** True if the claim has exactly the desired conditions of these types. */
export function hasConditions(claim: IPAMClaim, desired: DesiredConditions): boolean {
  return Object.entries(desired).every(([type, value]) => isSameCondition(conditionOf(claim, type), value));
}

/**
 * Returns the conditions of a claim after a write. Those of other writers stay, in their order.
 * @param now milliseconds since the epoch
 */
export function conditionsAfter(claim: IPAMClaim, desired: DesiredConditions, now: number): Condition[] {
  const others = (claim.status?.conditions ?? []).filter(({ type }) => !Object.hasOwn(desired, type));
  const own = Object.entries(desired).flatMap(([type, value]) =>
    value === undefined ? [] : toCondition(claim, type, { value, now }),
  );
  return [...others, ...own];
}

/**
 * Writes the conditions that the claim does not have. Nothing is written to a claim without a status: its IPAM has not answered yet.
 * @param now milliseconds since the epoch
 * @returns whether something was written
 */
export async function writeConditions(
  client: Pick<Client, 'patch'>,
  claim: IPAMClaim,
  desired: DesiredConditions,
  now: number,
): Promise<boolean> {
  if (claim.status === undefined || hasConditions(claim, desired)) return false;
  const { name, namespace = '' } = claim.metadata;
  const body = conditionsPatch(claim, desired, now);
  await client.patch(IPAM_CLAIMS, { namespace, name }, { type: 'merge', body }, { subresource: 'status' });
  return true;
}

/**
 * Creates a merge patch (RFC 7386) of a claim's conditions and of nothing else. The kind requires `status.ips`, so a claim that has no
 * status yet cannot be patched.
 */
export function conditionsPatch(claim: IPAMClaim, desired: DesiredConditions, now: number): object {
  const { uid, resourceVersion } = claim.metadata;
  return { metadata: { uid, resourceVersion }, status: { conditions: conditionsAfter(claim, desired, now) } };
}

/** True if both say the same. Their times may differ. */
export function isSameCondition(found: ConditionValue | undefined, value: ConditionValue | undefined): boolean {
  if (found === undefined || value === undefined) return found === value;
  return found.status === value.status && found.reason === value.reason && found.message === value.message;
}

function toCondition(
  claim: IPAMClaim,
  type: string,
  { value, now }: { value: ConditionValue; now: number },
): Condition {
  const before = conditionOf(claim, type);
  if (before !== undefined && isSameCondition(before, value)) return before;
  const { generation } = claim.metadata;
  return {
    type,
    ...value,
    lastTransitionTime: transitionTimeOf(before, value.status, now),
    ...(generation !== undefined && { observedGeneration: generation }),
  };
}

/** The message of the condition and the event of a claim that is not released. */
export const OWNER_KIND_NOT_SERVED =
  'The API server does not serve VirtualMachines or VirtualMachineInstances (kubevirt.io/v1), so Holdfast cannot check whether the owner of this claim exists. ' +
  "The claim keeps its addresses. Install KubeVirt's CRDs again, or, if its VM and launcher pods are gone for good, remove the claim's finalizer kubevirt.io/persistent-ipam and delete the claim";
