import { EVENT_REASONS, EventReason } from '../../api/event-reasons.js';
import { AllocationReason } from '../../api/names.js';
import type { Read } from '../reader.js';
import type { TraceFinding } from './tree.js';

const { PredecessorClaim, ClaimDelayed, ClaimRefused } = EVENT_REASONS;

/** What to do about a reason whose message does not say it, or not how. */
const REMEDIES: Readonly<Partial<Record<string, string>>> = {
  [AllocationReason.Conflict]:
    'delete the owner of the address if it is not needed. ipam retries when the address is free',
  [AllocationReason.Internal]: 'correct what the message names, and see the log of ipam. ipam retries',
  [AllocationReason.InvalidRequest]: "correct the annotation network.kubevirt.io/addresses of the VM's template",
  ...Object.fromEntries([PredecessorClaim, ClaimDelayed, ClaimRefused].map(({ reason, todo }) => [reason, todo])),
  [EventReason.NetworkInvalid]: 'correct the NAD',
  [EventReason.IpamNotResponding]:
    'see the pods of holdfast-ipam, their logs, and kubectl -n holdfast-system get lease',
  FailedScheduling: 'see what the message lists; with ipam.holdfast.dev/…, no node has a free address of the pool',
};

/** Returns the finding of a condition or event, with what to do unless its message says it. */
export function findingOf(health: TraceFinding['health'], reason: string, message: string): TraceFinding {
  const remedy = Object.hasOwn(REMEDIES, reason) ? REMEDIES[reason] : undefined;
  return { health, reason, message, ...(remedy !== undefined && { remedy }) };
}

/** Says why something could not be read, if it could not. */
export function unreadFindings(read: Read<unknown>): TraceFinding[] {
  return read.kind === 'found' || read.kind === 'absent' ? [] : [{ health: 'unknown', message: read.why }];
}
