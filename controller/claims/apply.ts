import type { IPAMClaim } from '../../api/ipam-claim.js';
import { objectKey } from '../../api/meta.js';
import type { Client } from '../../kube/client.js';
import { type ErrorClass, classifyError, isForbidden, isInvalid, messageOf } from '../../kube/errors.js';
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

/** Applies actions concurrently. An action that fails does not stop the others. */
export async function applyAll(
  actions: readonly Action[],
  client: ClaimClient,
  { call = {}, isStillDue = () => Promise.resolve(true) }: Partial<ReleaseContext> = {},
): Promise<FailedAction[]> {
  const outcomes = await Promise.allSettled(actions.map((action) => applyOne(action, client, { call, isStillDue })));
  return outcomes.flatMap((outcome, index) => {
    const action = actions[index];
    return outcome.status === 'rejected' && action !== undefined ? [{ action, error: outcome.reason as unknown }] : [];
  });
}

const RETRY_ORDER: readonly ErrorClass[] = ['stale', 'transient', 'invalid'];

/** Returns the failure that has to be retried first, so that a claim which the API server always rejects delays no other. */
export function mostUrgent(failures: readonly FailedAction[]): FailedAction | undefined {
  const rank = ({ error }: FailedAction) => RETRY_ORDER.indexOf(classifyError(error));
  return [...failures].sort((a, b) => rank(a) - rank(b))[0];
}

/** Returns the API server's message if it rejects the claim whatever the state of the others. */
export function rejectionOf({ action, error }: FailedAction): string | undefined {
  const createsClaim = action.kind === 'create' || action.kind === 'release';
  if (!createsClaim || !(isInvalid(error) || isForbidden(error))) return undefined;
  return `The API server rejected IPAMClaim ${objectKey(action.claim)}: ${messageOf(error)}`;
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
