import { EventReason } from '../../api/event-reasons.js';
import { type IPAMClaim, addressTextsOf, claimOwnerOf } from '../../api/ipam-claim.js';
import { describeValue, nameFirst } from '../../api/json.js';
import { isBeingDeleted, joinKey } from '../../api/meta.js';
import { NETWORK_STATUS_ANNOTATION } from '../../api/names.js';
import { type NetworkStatus, type Pod, controllingVmi, reportedIPsOf } from '../../api/pod.js';
import { claimEventSubjects } from '../../cluster/event-subjects.js';
import { workloadOfClaim } from '../../cluster/watch-specs.js';
import { setMostRecent } from '../../kube/informers/cache.js';
import type { Clock } from '../../kube/clock.js';
import type { EventSubject } from '../../kube/events.js';
import type { ObjectChange } from '../../kube/informers/informer.js';
import type { Action } from './plan/action.js';
import type { ObservedWorkload } from './plan/observed-workload.js';
import { networkStatusesOf, reportedAttachment } from './plan/references.js';

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
function allocationEventsOf({ claims }: ObservedWorkload): LifeEvent[] {
  const current = claims.filter((claim) => !isBeingDeleted(claim));
  return eventByOwner(current, EventReason.AddressesAllocated, (all) => {
    const served = all.filter(hasAddresses);
    return served.length === 0 ? undefined : `Allocated ${named(served, addressesWithName)}`;
  });
}

/** True if a claim of the workload has no addresses yet, and no answer why. */
function awaitsAllocation({ claims }: ObservedWorkload): boolean {
  return claims.some((claim) => claim.status === undefined && !isBeingDeleted(claim));
}

/** Returns the event that says on which node a launcher uses which addresses of claims, if it uses one of these interfaces for a claim. */
function useEventsOf(pod: Pod, observed: ObservedWorkload, interfaces: ReadonlySet<string>): LifeEvent[] {
  const used = observed.claims.flatMap((claim) => {
    const isUsable = !isBeingDeleted(claim) && hasAddresses(claim);
    const attachment = isUsable ? reportedAttachment(pod, claim, observed) : undefined;
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
  return nameFirst(claims.map(describe), MAX_NAMED);
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

/** How long the first address of a VM waits for the others, so that one event names all. */
const COLLECT_MS = 10_000;
/** Launchers that wait for their event. Beyond this number, the events of the least recent ones are not recorded. */
const MAX_LAUNCHERS = 4096;
/** For one launcher; no VM has as many interfaces. */
const MAX_INTERFACES = 256;
/** IFNAMSIZ of Linux without the final zero. Users of the namespace can write longer names into the annotation. */
const MAX_INTERFACE_NAME = 15;

/**
 * Changes that watches have shown and that no event has told yet: claims got addresses, launchers got networks. The first list after a start shows
 * no change, so a new leader repeats nothing.
 */
export class UnreportedChanges {
  readonly #clock: Pick<Clock, 'now'>;
  /** When the first unreported address of each workload was seen, by the clock. */
  readonly #allocations = new Map<string, number>();
  /** Interfaces that got another network or other addresses, by the UID of the launcher. */
  readonly #interfaces = new Map<string, ReadonlySet<string>>();

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock;
  }

  claimChanged({ object, before }: ObjectChange<IPAMClaim>): void {
    if (before === undefined || countOf(before) > 0 || countOf(object) === 0) return;
    for (const workload of workloadOfClaim(object)) {
      if (!this.#allocations.has(workload)) this.#allocations.set(workload, this.#clock.now());
    }
  }

  launcherChanged({ type, object, before }: ObjectChange<Pod>): void {
    const { uid = '' } = object.metadata;
    if (type === 'removed') this.#interfaces.delete(uid);
    // a pod that no VMI controls belongs to no workload, which could take its changes
    if (type !== 'changed' || before === undefined || controllingVmi(object) === undefined) return;
    if (statusOf(object) === statusOf(before)) return;
    const changed = [...(this.#interfaces.get(uid) ?? []), ...changedInterfaces(before, object)];
    if (changed.length === 0) return;
    setMostRecent(this.#interfaces, uid, new Set(changed.slice(0, MAX_INTERFACES)), MAX_LAUNCHERS);
  }

  /** @returns the events to record now, and after which time to ask again for the others */
  take(workload: string, observed: ObservedWorkload): { events: LifeEvent[]; againAfterMs?: number } {
    const uses = observed.launchers.flatMap((pod) => this.#takeUses(pod, observed));
    const since = this.#allocations.get(workload);
    if (since === undefined) return { events: uses };
    const leftMs = since + COLLECT_MS - this.#clock.now();
    // a launcher that uses addresses shows that no other address is missing
    if (uses.length === 0 && leftMs > 0 && awaitsAllocation(observed)) return { events: [], againAfterMs: leftMs };
    this.#allocations.delete(workload);
    return { events: [...allocationEventsOf(observed), ...uses] };
  }

  #takeUses(pod: Pod, observed: ObservedWorkload): LifeEvent[] {
    const { uid = '' } = pod.metadata;
    const interfaces = this.#interfaces.get(uid);
    this.#interfaces.delete(uid);
    return interfaces === undefined ? [] : useEventsOf(pod, observed, interfaces);
  }
}

/** Returns the interfaces of attachments that the pod did not have before, with these addresses. */
function changedInterfaces(before: Pod, after: Pod): string[] {
  const known = new Set(networkStatusesOf(before).map((status) => JSON.stringify(status)));
  return networkStatusesOf(after)
    .filter((status) => !known.has(JSON.stringify(status)))
    .flatMap(({ interface: name = '' }) => (name.length > MAX_INTERFACE_NAME ? [] : [name]));
}

function countOf(claim: IPAMClaim): number {
  return claim.status?.ips?.length ?? 0;
}

function statusOf(pod: Pod): string | undefined {
  return pod.metadata.annotations?.[NETWORK_STATUS_ANNOTATION];
}
