import { type IPAMClaim, addressTextsOf, claimOwnerOf } from '../../api/ipam-claim.js';
import { isBeingDeleted, joinKey } from '../../api/meta.js';
import { describeValue } from '../../api/json.js';
import { EventReason } from '../../api/event-reasons.js';
import { type NetworkStatus, type Pod, reportedIPsOf } from '../../api/pod.js';
import { claimEventSubjects } from '../../cluster/event-subjects.js';
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

/** Returns the events for actions that have succeeded: one for all releases of an owner that have the same reason. */
export function lifeEventsOf(actions: readonly Action[]): LifeEvent[] {
  const created = actions.flatMap((action) => (action.kind === 'create' ? [action.claim] : []));
  const releases = actions.filter((action) => action.kind === 'release');
  const reasons = new Set(releases.map(({ reason }) => reason));
  return [
    ...creationEventsOf(created),
    ...[...reasons].flatMap((why) =>
      eventByOwner(
        releases.flatMap(({ claim, reason }) => (reason === why ? [claim] : [])),
        EventReason.ClaimReleased,
        (claims) => `Released ${named(claims, nameWithAddresses)}: ${why}`,
      ),
    ),
  ];
}

/** Returns the events for claims that were created: one for each owner. */
export function creationEventsOf(created: readonly IPAMClaim[]): LifeEvent[] {
  return eventByOwner(created, EventReason.ClaimCreated, (claims) => `Created ${named(claims, nameOf)}`);
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
  return `IPAMClaim ${joinKey(metadata.namespace, metadata.name)} for network ${describeValue(spec.network)}`;
}

function nameWithAddresses(claim: IPAMClaim): string {
  const ips = claim.status?.ips ?? [];
  return `IPAMClaim ${claim.metadata.name}${ips.length > 0 ? ` with ${ips.join(' and ')}` : ''}`;
}

function addressesWithName(claim: IPAMClaim): string {
  return `${claim.status?.ips?.join(' and ') ?? ''} to IPAMClaim ${claim.metadata.name}`;
}

/** Of what Multus reports, only addresses of the claim are shown: users of the namespace can write any text into the annotation. */
function describeUse(claim: IPAMClaim, attachment: NetworkStatus | undefined): string {
  const { name } = claim.metadata;
  const reported = new Set(attachment === undefined ? [] : reportedIPsOf(attachment));
  const ips = addressTextsOf(claim).filter((ip) => reported.has(ip));
  return ips.length === 0 ? `IPAMClaim ${name}` : `${ips.join(' and ')} of IPAMClaim ${name}`;
}

function hasAddresses({ status }: IPAMClaim): boolean {
  return (status?.ips ?? []).length > 0;
}
