import { EventReason } from '../../api/event-reasons.js';
import { isTerminal } from '../../api/pod.js';
import type { Event } from '../../kube/events.js';
import { valueOf } from '../reader.js';
import type { ObservedVmTrace } from './observed.js';
import { type TraceFinding, findingOf } from './tree.js';

/** Events of one object are few; a tenant may write others. */
const MAX_EVENTS = 1_000;

/** Reasons why an interface has no claim. The messages name the network or the claim, or are about the whole VM. */
const WITHOUT_CLAIM: ReadonlySet<string> = new Set<string>([
  ...[EventReason.NetworkNotFound, EventReason.NetworkInvalid, EventReason.NetworkNotServed],
  EventReason.AddressNotPersistent,
  ...[EventReason.ClaimLimit, EventReason.ClaimRefused, EventReason.ClaimQuota, EventReason.ClaimDelayed],
  ...[EventReason.ForeignClaim, EventReason.PredecessorClaim, EventReason.RequestedAddressesInvalid],
]);
/** Reasons that are about all networks of a VM, and need not name one. */
const OF_ALL_NETWORKS: ReadonlySet<string> = new Set<string>([EventReason.ClaimLimit, EventReason.ClaimQuota]);
/** Reasons why nobody answers a claim. */
const UNANSWERED: ReadonlySet<string> = new Set<string>([EventReason.ClaimNotHonoured, EventReason.IpamNotResponding]);
/** Reasons that guards of interfaces give. */
const OF_GUARD: ReadonlySet<string> = new Set<string>([EventReason.TrafficNotOfClaim, EventReason.GuardNotApplied]);
/** The VM works, and somebody should do something. */
const WARNINGS: ReadonlySet<string> = new Set<string>([...OF_GUARD, EventReason.AddressNotPersistent]);
/** Reasons why a pod does not start. */
const NOT_STARTED: ReadonlySet<string> = new Set(['FailedCreatePodSandBox', 'FailedScheduling']);

/** Returns the newest event that says why a network has no claim. @param names the names of its possible claims */
export function missingClaimEvent(
  observed: ObservedVmTrace,
  vmNetwork: string,
  names: readonly string[],
): TraceFinding | undefined {
  const isAbout = (message: string) => [`"${vmNetwork}"`, ...names].some((text) => message.includes(text));
  const isWanted = ({ reason, message }: Event) =>
    WITHOUT_CLAIM.has(reason) && (OF_ALL_NETWORKS.has(reason) || isAbout(message));
  return newest(observed, isWanted, observed.name);
}

/** Returns the newest event that says why nobody answers a claim. */
export function unansweredClaimEvent(observed: ObservedVmTrace, claim: string): TraceFinding | undefined {
  const isWanted = ({ reason, message, involvedObject: { name } }: Event) =>
    UNANSWERED.has(reason) && (name === claim || (name === observed.name && message.includes(claim)));
  return newest(observed, isWanted);
}

/** Returns the newest event that says why a pod has not started. */
export function podStartEvent(observed: ObservedVmTrace, pod: string): TraceFinding | undefined {
  return newest(observed, ({ reason, involvedObject: { kind } }) => kind === 'Pod' && NOT_STARTED.has(reason), pod);
}

/** Returns the newest event that says why KubeVirt could not create a launcher. */
export function launcherRefusalEvent(observed: ObservedVmTrace): TraceFinding | undefined {
  return newest(observed, ({ reason }) => reason === 'FailedCreate', observed.name);
}

/** Returns what the newest event says about an address that a running launcher has without a lease. */
export function unleasedFindings(observed: ObservedVmTrace): TraceFinding[] {
  const live = valueOf(observed.pods, []).filter((pod) => !isTerminal(pod));
  const isOfLauncher = ({ reason, message }: Event) =>
    reason === EventReason.AddressNotLeased &&
    (observed.pods.kind !== 'found' || live.some(({ metadata }) => message.includes(metadata.name)));
  return [newest(observed, isOfLauncher, observed.name) ?? []].flat();
}

/** Returns what the newest event of a guard says about the interfaces of the VM. */
export function guardFindings(observed: ObservedVmTrace): TraceFinding[] {
  return [newest(observed, ({ reason }) => OF_GUARD.has(reason), observed.name) ?? []].flat();
}

/** @param object the name of the object of the event; absent: any */
function newest(
  { events }: ObservedVmTrace,
  isWanted: (event: Event) => boolean,
  object?: string,
): TraceFinding | undefined {
  let found: Event | undefined;
  for (const event of valueOf(events, []).slice(0, MAX_EVENTS)) {
    if (object !== undefined && event.involvedObject.name !== object) continue;
    if (isWanted(event) && (found === undefined || timeOf(event) >= timeOf(found))) found = event;
  }
  return found && findingOf(WARNINGS.has(found.reason) ? 'warning' : 'wrong', found.reason, found.message);
}

/** RFC 3339 in UTC, so that texts compare as times. Events of the newer API have only an `eventTime`. */
function timeOf(event: Event): string {
  return event.lastTimestamp || (event as { eventTime?: string }).eventTime || event.metadata.creationTimestamp || '';
}
