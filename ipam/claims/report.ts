import { type IPAMClaim, isWorkloadClaim, ownerOf } from '../../api/ipam-claim.js';
import { controllerOf } from '../../api/meta.js';
import {
  EventReason,
  IPAM_CLAIM_API_VERSION,
  IPAM_CLAIM_KIND,
  IPS_ALLOCATED,
  KUBEVIRT_API_VERSION,
  REQUEST_HONOURED,
  VIRTUAL_MACHINE_KIND,
} from '../../api/names.js';
import type { EventRecorder, EventSubject, EventType } from '../../kube/events.js';
import { conditionOf, says } from './status.js';
import type { ClaimVerdict } from './step.js';

/** What users are told when a claim's status changes. */
export interface Notice {
  type: EventType;
  reason: EventReason;
  message: string;
}

/**
 * What is worth an event: refusals, their end, and new addresses for old ones. That a new claim has its addresses is expected; thousands may
 * come at once, and their status says it.
 */
export function noticesOf(claim: IPAMClaim, verdict: ClaimVerdict): Notice[] {
  const { request } = verdict;
  const notices = [noticeOfAllocation(claim, verdict)];
  if (request !== undefined && !says(conditionOf(claim, REQUEST_HONOURED), request)) {
    notices.push(warning(EventReason.RequestedAddressesPending, `${request.reason}: ${request.message}`));
  }
  return notices.filter((notice) => notice !== undefined);
}

function noticeOfAllocation(claim: IPAMClaim, { ips, allocated }: ClaimVerdict): Notice | undefined {
  const before = conditionOf(claim, IPS_ALLOCATED);
  if (allocated.status !== 'True') {
    if (says(before, allocated)) return undefined;
    return warning(EventReason.AddressesRefused, `${allocated.reason}: ${allocated.message}`);
  }
  if (before?.status === 'False') return normal(`${ips.join(', ')} ${allocated.message}`);
  const shown = claim.status?.ips ?? [];
  if (shown.length === 0 || shown.join() === ips.join()) return undefined;
  return normal(`${ips.join(', ')} in place of ${shown.join(', ')}`);
}

/** The claim, and the VM, or VMI without one, that it is for. */
export function subjectsOf(claim: IPAMClaim): EventSubject[] {
  const { namespace = '', name, uid = '' } = claim.metadata;
  const itself: EventSubject = {
    apiVersion: IPAM_CLAIM_API_VERSION,
    kind: IPAM_CLAIM_KIND,
    metadata: { namespace, name, uid },
  };
  const owner = ownerOf(claim);
  if (owner === undefined || !isWorkloadClaim(claim)) return [itself];
  const { apiVersion = KUBEVIRT_API_VERSION, kind = VIRTUAL_MACHINE_KIND } = controllerOf(claim) ?? {};
  return [itself, { apiVersion, kind, metadata: { namespace, name: owner.name, uid: owner.uid } }];
}

export function report(claim: IPAMClaim, verdict: ClaimVerdict, events: Pick<EventRecorder, 'event'>): void {
  for (const { type, reason, message } of noticesOf(claim, verdict)) {
    for (const subject of subjectsOf(claim)) events.event(subject, type, reason, message);
  }
}

function warning(reason: EventReason, message: string): Notice {
  return { type: 'Warning', reason, message };
}

function normal(message: string): Notice {
  return { type: 'Normal', reason: EventReason.AddressesAllocated, message };
}
