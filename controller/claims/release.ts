import { type IPAMClaim, claimOwnerOf } from '../../api/ipam-claim.js';
import { isBeingDeleted, objectKey } from '../../api/meta.js';
import { CLAIM_FINALIZER } from '../../api/names.js';
import type { CallOptions, Client, Patch } from '../../kube/client.js';
import { StatusError, isConflict, isInvalid, isNotFound } from '../../kube/errors.js';
import { IPAM_CLAIMS } from '../../kube/resources.js';
import type { Action } from './action.js';

export type Release = Extract<Action, { kind: 'release' }>;
export type ReleaseClient = Pick<Client, 'patch' | 'delete' | 'find'>;

export interface ReleaseContext {
  call: CallOptions;
  /** Reads again whether anything uses the claim. */
  isStillDue: (action: Release) => Promise<boolean>;
}

/** A living VM may start at any time, so a write must soon follow the read that allowed it. */
const DEADLINE_MS = 2000;

/**
 * Deletes the claim as it was planned, then removes our finalizer: after a crash in between, the next sync finishes the release. If the owner is
 * alive, a second read after the deletion finds pods that began to use the claim before it.
 */
export async function release(action: Release, client: ReleaseClient, context: ReleaseContext): Promise<void> {
  const { claim, isOwnerAlive = false } = action;
  const call = isOwnerAlive ? { ...context.call, deadlineMs: DEADLINE_MS } : context.call;
  const deleted = isBeingDeleted(claim) ? claim : await deleteClaim(claim, client, call);
  const isNew = deleted !== undefined && !isBeingDeleted(claim);
  if (isNew && isOwnerAlive && !(await context.isStillDue(action))) {
    throw conflict(`IPAMClaim ${objectKey(claim)} is in use again: it is released when its VM stops`);
  }
  const position = deleted?.metadata.finalizers?.indexOf(CLAIM_FINALIZER) ?? -1;
  if (position >= 0)
    await removeFinalizer(claim, position, (patch) => client.patch(IPAM_CLAIMS, claimRefOf(claim), patch, call));
}

/** @returns the claim whose finalizer has to be removed; undefined if it is gone */
async function deleteClaim(claim: IPAMClaim, client: ReleaseClient, call: CallOptions): Promise<IPAMClaim | undefined> {
  const { uid, resourceVersion } = claim.metadata;
  try {
    await client.delete(IPAM_CLAIMS, claimRefOf(claim), { uid, resourceVersion, ...call });
    return claim;
  } catch (error) {
    if (!isConflict(error)) throw error;
    const changed = await client.find(IPAM_CLAIMS, claimRefOf(claim), call);
    if (changed === undefined || changed.metadata.uid !== uid) return undefined;
    // the garbage collector deleted it first
    if (isBeingDeleted(changed) && claimOwnerOf(changed)?.uid === claimOwnerOf(claim)?.uid) return changed;
    throw error;
  }
}

/** If the claim was being deleted already when it was read, it must not have changed since. */
async function removeFinalizer(
  claim: IPAMClaim,
  position: number,
  patch: (patch: Patch) => Promise<unknown>,
): Promise<void> {
  const path = `/metadata/finalizers/${position}`;
  const { uid, resourceVersion } = claim.metadata;
  const unchanged = { op: 'test' as const, path: '/metadata/resourceVersion', value: resourceVersion };
  const operations = [
    { op: 'test' as const, path: '/metadata/uid', value: uid },
    ...(isBeingDeleted(claim) ? [unchanged] : []),
    { op: 'test' as const, path, value: CLAIM_FINALIZER },
    { op: 'remove' as const, path },
  ];
  try {
    await patch({ type: 'json', operations });
  } catch (error) {
    if (isNotFound(error)) return;
    // the API server answers 422 if a test of the patch fails
    if (isInvalid(error)) throw conflict(error.message);
    throw error;
  }
}

function conflict(message: string): StatusError {
  return new StatusError({ request: 'PATCH', status: 409, reason: 'Conflict', message });
}

export function claimRefOf({ metadata: { namespace, name } }: IPAMClaim) {
  return { namespace, name };
}
