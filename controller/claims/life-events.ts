import { type IPAMClaim, claimOwnerOf } from '../../api/ipam-claim.js';
import { isBeingDeleted, joinKey } from '../../api/meta.js';
import { EventReason } from '../../api/names.js';
import { type NetworkStatus, reportedIPsOf } from '../../api/network-status.js';
import type { Pod } from '../../api/pod.js';
import { claimEventSubjects } from '../../cluster/claim-event-subjects.js';
import type { EventSubject } from '../../kube/events.js';
import type { Action } from './action.js';
import type { ObservedWorkload } from './observed-workload.js';
import { reportedAttachment } from './references.js';

/** What has happened to the claims of a VM, on the VM or on a VMI without a VM: one event for all claims that it happened to. */
export interface LifeEvent {
  subject: EventSubject;
  reason: EventReason;
  message: string;
}

/** An event names no more claims. */
const MAX_NAMED = 8;

/** Returns the events for actions that have succeeded. */
export function lifeEventsOf(actions: readonly Action[]): LifeEvent[] {
  const created = actions.flatMap((action) => (action.kind === 'create' ? [action.claim] : []));
  const released = actions.flatMap((action) => (action.kind === 'release' ? [action.claim] : []));
  const whyReleased = actions.find(({ kind }) => kind === 'release')?.reason ?? '';
  return [
    ...eventByOwner(created, EventReason.ClaimCreated, (claims) => `Created ${named(claims, nameOf)}`),
    ...eventByOwner(
      released,
      EventReason.ClaimReleased,
      (claims) => `Released ${named(claims, nameWithAddresses)}: ${whyReleased}`,
    ),
  ];
}

/** Returns the event that says which addresses the claims of the workload have, and which have none yet. */
export function allocationEventsOf({ claims }: ObservedWorkload): LifeEvent[] {
  const current = claims.filter((claim) => !isBeingDeleted(claim));
  return eventByOwner(current, EventReason.AddressesAllocated, (all) => {
    const served = all.filter(hasAddresses);
    return served.length === 0 ? undefined : `Allocated ${named(served, addressesWithName)}`;
  });
}

/** True if a claim of the workload has no addresses yet, and no answer why. */
export function awaitsAllocation({ claims }: ObservedWorkload): boolean {
  return claims.some((claim) => claim.status === undefined && !isBeingDeleted(claim));
}

/** Returns the event that says on which node a launcher uses which addresses of claims, if it uses one of these interfaces for a claim. */
export function useEventsOf(pod: Pod, observed: ObservedWorkload, interfaces: ReadonlySet<string>): LifeEvent[] {
  const used = observed.claims.flatMap((claim) => {
    const attachment = isBeingDeleted(claim) ? undefined : reportedAttachment(pod, claim, observed);
    return attachment === undefined ? [] : [[claim, attachment] as const];
  });
  const attachments = new Map(used);
  const isNew = (claim: IPAMClaim) => interfaces.has(attachments.get(claim)?.interface ?? '');
  const node = pod.spec?.nodeName === undefined ? '' : ` on node ${pod.spec.nodeName}`;
  return eventByOwner([...attachments.keys()], EventReason.AddressesInUse, (claims) =>
    claims.some(isNew)
      ? `Pod ${pod.metadata.name}${node} uses ${named(claims, (claim) => describeUse(claim, attachments.get(claim)))}`
      : undefined,
  );
}

function eventByOwner(
  claims: readonly IPAMClaim[],
  reason: EventReason,
  messageOf: (claims: readonly IPAMClaim[]) => string | undefined,
): LifeEvent[] {
  const groups = new Map<string, IPAMClaim[]>();
  // in the order of their names, so that events about the same claims are alike
  const sorted = [...claims].sort((a, b) => a.metadata.name.localeCompare(b.metadata.name));
  for (const claim of sorted) {
    const uid = claimOwnerOf(claim)?.uid ?? '';
    groups.set(uid, [...(groups.get(uid) ?? []), claim]);
  }
  return [...groups.values()].flatMap((group) => {
    // the owner may be gone: the events about it outlive it
    const subject = group[0] === undefined ? undefined : claimEventSubjects(group[0])[1];
    const message = messageOf(group);
    return subject === undefined || message === undefined ? [] : [{ subject, reason, message }];
  });
}

function named(claims: readonly IPAMClaim[], describe: (claim: IPAMClaim) => string): string {
  const more = claims.length > MAX_NAMED ? ` and ${claims.length - MAX_NAMED} more` : '';
  return `${claims.slice(0, MAX_NAMED).map(describe).join(', ')}${more}`;
}

function nameOf({ metadata, spec }: IPAMClaim): string {
  return `IPAMClaim ${joinKey(metadata.namespace, metadata.name)} for network ${spec.network}`;
}

function nameWithAddresses(claim: IPAMClaim): string {
  const ips = claim.status?.ips ?? [];
  return `IPAMClaim ${claim.metadata.name}${ips.length > 0 ? ` with ${ips.join(' and ')}` : ''}`;
}

function addressesWithName(claim: IPAMClaim): string {
  return `${claim.status?.ips?.join(' and ') ?? ''} to IPAMClaim ${claim.metadata.name}`;
}

function describeUse({ metadata: { name } }: IPAMClaim, attachment: NetworkStatus | undefined): string {
  const ips = attachment === undefined ? [] : reportedIPsOf(attachment);
  return ips.length === 0 ? `IPAMClaim ${name}` : `${ips.join(' and ')} of IPAMClaim ${name}`;
}

function hasAddresses({ status }: IPAMClaim): boolean {
  return (status?.ips ?? []).length > 0;
}
