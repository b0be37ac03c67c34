import type { IPAMClaim } from '../../api/ipam-claim.js';
import { objectKey } from '../../api/meta.js';
import type { Client } from '../../kube/client.js';
import { EventReason } from '../../api/event-reasons.js';
import {
  type ErrorClass,
  classifyError,
  isForbidden,
  isInvalid,
  messageOf,
  quotaRejectionOf,
  writeFailureOf,
} from '../../kube/errors.js';
import { forEachParallel } from '../../kube/run-in-slices.js';
import { IPAM_CLAIMS } from '../../kube/resources.js';
import type { Action } from './action.js';
import type { ClaimChanges } from './claim-object.js';
import { type ReleaseContext, claimRefOf, release } from './release.js';

export type ClaimClient = Pick<Client, 'create' | 'patch' | 'delete' | 'find'>;

/** An action that failed. */
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
  if (createsClaim && (isInvalid(error) || isForbidden(error))) {
    return { reason: EventReason.ClaimRefused, message: `The API server rejected ${claim}: ${messageOf(error)}` };
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
