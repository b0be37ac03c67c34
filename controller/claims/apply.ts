import { EventReason } from '../../api/event-reasons.js';
import { type IPAMClaim, claimOwnerOf } from '../../api/ipam-claim.js';
import { isBeingDeleted, objectKey } from '../../api/meta.js';
import { CLAIM_FINALIZER } from '../../api/names.js';
import { isProofOfAbsence } from '../../kube/absence.js';
import type { CallOptions, Client, Patch } from '../../kube/client.js';
import {
  type ErrorClass,
  StatusError,
  classifyError,
  isConflict,
  isInvalid,
  isRejected,
  messageOf,
  quotaRejectionOf,
  writeFailureOf,
} from '../../kube/errors.js';
import { IPAM_CLAIMS } from '../../kube/resources.js';
import { forEachParallel } from '../../kube/run-in-slices.js';
import type { Action } from './plan/action.js';
import type { ClaimChanges } from './plan/claim-object.js';

export type ClaimClient = Pick<Client, 'create' | 'patch' | 'delete' | 'find'>;

export interface FailedAction {
  action: Action;
  error: unknown;
}

/** More writes of one workload would wait in the process, where their deadlines run already. */
const CONCURRENT_WRITES = 4;

/** Applies actions, a few at the same time. An action that fails does not stop the others. */
export async function applyAll(
  actions: readonly Action[],
  client: ClaimClient,
  { call = {}, isStillDue = () => Promise.resolve(true) }: Partial<ReleaseContext> = {},
): Promise<FailedAction[]> {
  const failed: FailedAction[] = [];
  await forEachParallel(actions, CONCURRENT_WRITES, async (action) => {
    try {
      await applyOne(action, client, { call, isStillDue });
    } catch (error) {
      failed.push({ action, error });
    }
  });
  return failed;
}

const RETRY_ORDER: readonly ErrorClass[] = ['stale', 'transient', 'invalid'];

/** Returns the failure that has to be retried first, so that a claim which the API server always rejects delays no other. */
export function mostUrgent(failures: readonly FailedAction[]): FailedAction | undefined {
  const rank = ({ error }: FailedAction) => RETRY_ORDER.indexOf(classifyError(error));
  return [...failures].sort((a, b) => rank(a) - rank(b))[0];
}

/** Shorter failures heal before a user can look. */
const TOLD_AFTER_MS = 3_000;
const PARTICIPLES = { create: 'created', update: 'updated', release: 'released' } as const;

/**
 * Returns what to tell the user about a failure: the API server's reason if it rejects the claim whatever the state of the others, or why nothing
 * has worked for some time.
 */
export function failureEventOf(
  { action, error }: FailedAction,
  failingForMs: number,
): { reason: EventReason; message: string } | undefined {
  if (action.kind !== 'create' && action.kind !== 'update' && action.kind !== 'release') return undefined;
  const claim = `IPAMClaim ${objectKey(action.claim)}`;
  const createsClaim = action.kind !== 'update';
  const quota = quotaRejectionOf(error);
  if (createsClaim && quota !== undefined) {
    const remedy =
      'Delete VMs that are no longer needed, or have the quota raised: the claim is created when there is room';
    return { reason: EventReason.ClaimQuota, message: `${claim} cannot be created: ${quota}. ${remedy}` };
  }
  if (isRejected(error)) {
    const what = createsClaim ? claim : `a change of ${claim}`;
    return { reason: EventReason.ClaimRefused, message: `The API server rejected ${what}: ${messageOf(error)}` };
  }
  if (classifyError(error) !== 'transient' || failingForMs < TOLD_AFTER_MS) return undefined;
  const message = `${claim} is not ${PARTICIPLES[action.kind]} yet, and the controller retries: ${writeFailureOf(error)}`;
  return { reason: EventReason.ClaimDelayed, message };
}

async function applyOne(action: Action, client: ClaimClient, context: ReleaseContext): Promise<void> {
  const { call } = context;
  switch (action.kind) {
    case 'create':
      await client.create(IPAM_CLAIMS, action.claim, call);
      return;
    case 'update':
      await client.patch(IPAM_CLAIMS, claimRefOf(action.claim), mergePatch(action.claim, action.set), call);
      return;
    case 'release':
      await release(action, client, context);
      if (action.successor !== undefined) await client.create(IPAM_CLAIMS, action.successor, call);
      return;
    case 'keep':
    case 'wait':
    case 'refuse':
      return;
    default:
      action satisfies never;
  }
}

function mergePatch({ metadata: { uid, resourceVersion } }: IPAMClaim, set: ClaimChanges) {
  const { interface: podInterface, ...metadata } = set;
  return {
    type: 'merge' as const,
    body: {
      metadata: { uid, resourceVersion, ...metadata },
      ...(podInterface !== undefined && { spec: { interface: podInterface } }),
    },
  };
}

type Release = Extract<Action, { kind: 'release' }>;
type ReleaseClient = Pick<Client, 'patch' | 'delete' | 'find'>;

interface ReleaseContext {
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
async function release(action: Release, client: ReleaseClient, context: ReleaseContext): Promise<void> {
  const { claim, isOwnerAlive = false } = action;
  const call = isOwnerAlive ? { ...context.call, deadlineMs: DEADLINE_MS } : context.call;
  const deleted = isBeingDeleted(claim) ? claim : await deleteClaim(claim, client, call);
  if (deleted === undefined) return;
  if (deleted !== claim && isOwnerAlive && !(await context.isStillDue(action))) {
    throw conflict(`IPAMClaim ${objectKey(claim)} is in use again: it is released when its VM stops`);
  }
  const position = deleted.metadata.finalizers?.indexOf(CLAIM_FINALIZER) ?? -1;
  if (position >= 0)
    await removeFinalizer(deleted, position, (patch) => client.patch(IPAM_CLAIMS, claimRefOf(claim), patch, call));
}

/** @returns the claim that is being deleted now; undefined if it is gone */
async function deleteClaim(claim: IPAMClaim, client: ReleaseClient, call: CallOptions): Promise<IPAMClaim | undefined> {
  const { uid, resourceVersion } = claim.metadata;
  try {
    return await client.delete(IPAM_CLAIMS, claimRefOf(claim), { uid, resourceVersion, ...call });
  } catch (error) {
    if (!isConflict(error)) throw error;
    const changed = await client.find(IPAM_CLAIMS, claimRefOf(claim), call);
    if (changed === undefined || changed.metadata.uid !== uid) return undefined;
    // the garbage collector deleted it first
    if (isBeingDeleted(changed) && claimOwnerOf(changed)?.uid === claimOwnerOf(claim)?.uid) return changed;
    throw error;
  }
}

/** A patch without an answer may arrive late. If a new launcher uses the claim by then, ipam has written its status, and the patch is refused. */
async function removeFinalizer(
  claim: IPAMClaim,
  position: number,
  patch: (patch: Patch) => Promise<unknown>,
): Promise<void> {
  const path = `/metadata/finalizers/${position}`;
  const { uid, resourceVersion } = claim.metadata;
  const operations = [
    { op: 'test' as const, path: '/metadata/uid', value: uid },
    { op: 'test' as const, path: '/metadata/resourceVersion', value: resourceVersion },
    { op: 'test' as const, path, value: CLAIM_FINALIZER },
    { op: 'remove' as const, path },
  ];
  try {
    await patch({ type: 'json', operations });
  } catch (error) {
    if (isProofOfAbsence(error, IPAM_CLAIMS, claim.metadata.name)) return;
    // the API server answers 422 if a test of the patch fails
    if (isInvalid(error)) throw conflict(error.message);
    throw error;
  }
}

function conflict(message: string): StatusError {
  return new StatusError({ request: 'PATCH', status: 409, reason: 'Conflict', message });
}

function claimRefOf({ metadata: { namespace, name } }: IPAMClaim) {
  return { namespace, name };
}
