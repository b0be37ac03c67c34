import { EventReason } from '../../../api/event-reasons.js';
import {
  type ClaimOwner,
  type IPAMClaim,
  addressTextsOf,
  macSinceText,
  recordedMacOf,
  timedMacOf,
} from '../../../api/ipam-claim.js';
import { describeValue } from '../../../api/json.js';
import { parseMac } from '../../../api/mac-address.js';
import { isBeingDeleted, objectKey } from '../../../api/meta.js';
import {
  CLAIM_MAC_SINCE,
  CLAIM_REQUESTED_ADDRESSES,
  IPS_ALLOCATED,
  REQUESTED_ADDRESSES_ANNOTATION,
} from '../../../api/names.js';
import {
  type AddressRequest,
  describeUnknownNetworks,
  describeUnsupportedNetwork,
  requestedAddresses,
  requestedNetworks,
} from '../../../api/networks/requested-addresses.js';
import type { DesiredClaim, InterfaceProblem } from './desired-claim.js';
import type { ObservedWorkload, OwnerSpec } from './observed-workload.js';
import { type OwnedClaim, isInUse } from './ownership.js';

/**
 * Returns the addresses that the owner requests on one of its networks in the annotation of its template. It requests none on a network that only
 * its launchers still have.
 * @param nad the key of the NAD, `namespace/name`
 */
export function addressRequestOf(
  owner: ClaimOwner,
  vmNetwork: string,
  nad: string,
  observed: ObservedWorkload,
): AddressRequest {
  const spec = requestingSpecOf(owner, observed);
  const isOnNad = spec?.servedNetworks.get(vmNetwork)?.nadKey === nad;
  return isOnNad ? requestedAddresses(spec.annotations, vmNetwork) : { kind: 'none' };
}

/**
 * Returns the problems of requests without effect: those for networks that the owner does not have, or that have no claims. Another IPAM may serve
 * a request for the primary network.
 * @param served names of the networks that have claims, as in the VM's spec
 */
export function unservedRequests(owner: ClaimOwner, served: ReadonlySet<string>, observed: ObservedWorkload): string[] {
  const spec = requestingSpecOf(owner, observed);
  if (!observed.canCreateClaims || spec === undefined) return [];
  const requested = requestedNetworks(spec.annotations);
  const unknown = requested.filter((name) => !spec.networkNames.has(name));
  const unserved = requested.flatMap((name) => {
    const network = spec.servedNetworks.get(name);
    if (network === undefined || network.isUnplugRequested || served.has(name)) return [];
    const lookup = observed.networks.get(network.nadKey);
    // any other problem of the NAD is reported anyway
    return lookup?.found && lookup.config.ok ? [describeUnsupportedNetwork(name, network.nadKey)] : [];
  });
  return unknown.length === 0 ? unserved : [describeUnknownNetworks(unknown, [...spec.networkNames]), ...unserved];
}

/** The spec in which the owner makes its requests: that of the VMI if the VM is not in the cache yet. */
export function requestingSpecOf(owner: ClaimOwner, { vm, vmi }: ObservedWorkload): OwnerSpec | undefined {
  return vm?.metadata.uid === owner.uid ? vm.spec : vmi?.spec;
}

/** Returns the request as the annotation of a claim holds it; undefined if there is none. */
export function requestText({ request }: DesiredClaim): string | undefined {
  return request?.kind === 'addresses' ? JSON.stringify(request.addresses) : undefined;
}

/** Marks a request as late if the claim is in use: such a claim keeps its addresses. */
export function markLateRequest(owned: OwnedClaim, desired: DesiredClaim, observed: ObservedWorkload): DesiredClaim {
  if (desired.request === undefined || !keepsAddresses(owned, observed)) return desired;
  return { ...desired, request: { kind: 'late' } };
}

/** A claim in use keeps its addresses, or the request for which it gets some. One that is refused any address has nothing to keep. */
function keepsAddresses(owned: OwnedClaim, observed: ObservedWorkload): boolean {
  const { ips = [], conditions = [] } = owned.claim.status ?? {};
  const isRefused = conditions.some(({ type, status }) => type === IPS_ALLOCATED && status === 'False');
  return !(isRefused && ips.length === 0) && isInUse(owned, observed);
}

/** Returns a problem if a request comes too late because the VM runs with other addresses. */
export function findLateRequest(
  owned: OwnedClaim,
  desired: DesiredClaim,
  observed: ObservedWorkload,
): InterfaceProblem | undefined {
  const { claim } = owned;
  const text = requestText(desired);
  if (text === undefined || isBeingDeleted(claim) || !keepsAddresses(owned, observed)) return undefined;
  const requested = claim.metadata.annotations?.[CLAIM_REQUESTED_ADDRESSES];
  const held = claimedAddressesText(claim);
  if (requested === text || held === withoutPrefixes(text)) return undefined;
  const message =
    `${REQUESTED_ADDRESSES_ANNOTATION}: network "${desired.vmNetwork}": ${text} differs from the addresses of IPAMClaim ${objectKey(claim)} ` +
    `(${held ?? requested ?? 'any address'}), and the VM is running: stop the VM to change its addresses, or undo the change`;
  return { reason: EventReason.RequestedAddressesPending, message };
}

function withoutPrefixes(request: string): string {
  return request.replace(/\/\d+/g, '');
}

/** Returns the claim's addresses in the form of a request; undefined if it has none. */
function claimedAddressesText(claim: IPAMClaim): string | undefined {
  const addresses = addressTextsOf(claim);
  return addresses.length === 0 ? undefined : JSON.stringify(addresses);
}

/** The MAC address that a spec gives an interface. Sticky addresses and reservations depend on it. */
type SpecifiedMac =
  | { kind: 'none' }
  /** Lower case, with colons. */
  | { kind: 'mac'; mac: string }
  /** `problem` names the interface and the value, and says what to do. */
  | { kind: 'invalid'; problem: string };

/** Reads the MAC address of an interface from the VM's spec, or from the VMI's if only that one still has the interface. */
export function readSpecifiedMac(owner: ClaimOwner, vmNetwork: string, observed: ObservedWorkload): SpecifiedMac {
  const { vmi } = observed;
  const running = vmi?.owner.uid === owner.uid ? vmi.spec : undefined;
  const specs = [requestingSpecOf(owner, observed), running];
  const [vmInterface] = specs.flatMap((spec) => spec?.interfaces.get(vmNetwork) ?? []);
  if (vmInterface?.macAddress === undefined || vmInterface.macAddress === '') return { kind: 'none' };
  const mac = parseMac(vmInterface.macAddress);
  if (mac !== undefined) return { kind: 'mac', mac };
  const problem =
    `Interface "${vmNetwork}": macAddress ${describeValue(vmInterface.macAddress)} is not a MAC address, so its addresses are not sticky: ` +
    'write one like 02:00:00:00:00:01, or remove it';
  return { kind: 'invalid', problem };
}

/**
 * Returns the record since when an interface has its MAC address, which decides who is answered of those with one MAC address. The time begins anew
 * with each change, because a tenant can write the MAC address of another one into the spec of an old VM.
 * @param isAdopted the claim's records are not those of this owner
 */
export function macSince(claim: IPAMClaim, desired: DesiredClaim, isAdopted: boolean): string | undefined {
  const current = desired.guestMac ?? desired.mac;
  if (!isAdopted && hasKept(claim, current, desired)) return claim.metadata.annotations?.[CLAIM_MAC_SINCE];
  return current === undefined ? undefined : macSinceText(current, desired.observedAt);
}

function hasKept(
  claim: IPAMClaim,
  current: string | undefined,
  { isAttached, runningMac }: Pick<DesiredClaim, 'isAttached' | 'runningMac'>,
): boolean {
  const timed = timedMacOf(claim);
  // a guest keeps its generated address although KubeVirt does not report it now, or its NAD cannot be read
  if (current === undefined) return isAttached && (runningMac ?? timed) === timed;
  // without a time, the claim has had the recorded address since it was created
  return (timed ?? recordedMacOf(claim)) === current;
}
