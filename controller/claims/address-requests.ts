import type { ClaimOwner, IPAMClaim } from '../../api/ipam-claim.js';
import { isBeingDeleted, objectKey } from '../../api/meta.js';
import { CLAIM_REQUESTED_ADDRESSES, EventReason, REQUESTED_ADDRESSES_ANNOTATION } from '../../api/names.js';
import { type AddressRequest, requestedNetworks, requestedAddresses } from '../../api/requested-addresses.js';
import type { WorkloadEvent } from './workload-event.js';
import type { DesiredClaim } from './desired-claim.js';
import type { ObservedWorkload } from './observed-workload.js';
import type { OwnerSpec } from './owner-spec.js';
import { type OwnedClaim, isInUse } from './ownership.js';

/** The addresses that users ask for in an annotation of the VM's template. */

/**
 * What the owner asks for on one of its networks, by name and NAD (`namespace/name`): nothing on a network that only its launchers still have.
 * A VM that is not seen yet asks through its VMI, to which KubeVirt copies the template's annotations.
 */
export function addressRequestOf(
  owner: ClaimOwner,
  vmNetwork: string,
  nad: string,
  observed: ObservedWorkload,
): AddressRequest {
  const spec = requestingSpecOf(owner, observed);
  const isOnNad = spec?.secondaryNetworks.get(vmNetwork)?.nadKey === nad;
  return isOnNad ? requestedAddresses(spec.annotations, vmNetwork) : { kind: 'none' };
}

/**
 * What the owner asks for in vain: on networks that it does not have, or that have no claims. What it asks for on its primary network is between it
 * and who serves that.
 * @param served the networks that have claims, by their names in the VM's spec
 * @returns problems, which say what to do
 */
export function unservedRequests(owner: ClaimOwner, served: ReadonlySet<string>, observed: ObservedWorkload): string[] {
  const spec = requestingSpecOf(owner, observed);
  if (!observed.canCreateClaims || spec === undefined) return [];
  const requested = requestedNetworks(spec.annotations);
  const unknown = requested.filter((name) => !spec.networkNames.has(name));
  const unserved = requested.flatMap((name) => {
    const network = spec.secondaryNetworks.get(name);
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

function describeUnknownNetworks(unknown: readonly string[], names: readonly string[]): string {
  const known = names.length === 0 ? 'it has none' : `it has ${quoteNames(names)}`;
  return `${REQUESTED_ADDRESSES_ANNOTATION}: the VM has no network ${quoteNames(unknown)} (${known}): correct the name, or remove it from the annotation`;
}

function quoteNames(names: readonly string[]): string {
  return names.map((name) => JSON.stringify(name)).join(', ');
}

function describeUnsupportedNetwork(asked: string, nad: string): string {
  return (
    `${REQUESTED_ADDRESSES_ANNOTATION}: network "${asked}": NetworkAttachmentDefinition ${nad} does not allow persistent IPs, so nobody keeps ` +
    `addresses for it: set "allowPersistentIPs": true in its spec.config, or remove the network from the annotation`
  );
}

/** The request as a claim carries it; undefined where there is none. */
export function requestText({ request }: DesiredClaim): string | undefined {
  return request?.kind === 'addresses' ? JSON.stringify(request.addresses) : undefined;
}

/** What a claim can be made to fit: one that is in use keeps the addresses that it has. */
export function withoutLateRequest(owned: OwnedClaim, wanted: DesiredClaim, observed: ObservedWorkload): DesiredClaim {
  if (wanted.request === undefined || !isInUse(owned, observed)) return wanted;
  const { request: _late, ...rest } = wanted;
  return rest;
}

/** Says that a request comes too late, while the VM runs with other addresses. */
export function lateRequestEvent(
  owned: OwnedClaim,
  wanted: DesiredClaim,
  observed: ObservedWorkload,
): Omit<WorkloadEvent, 'regarding'> | undefined {
  const { claim } = owned;
  const text = requestText(wanted);
  if (text === undefined || isBeingDeleted(claim) || !isInUse(owned, observed)) return undefined;
  const asked = claim.metadata.annotations?.[CLAIM_REQUESTED_ADDRESSES];
  const held = claimedAddressesText(claim);
  if (asked === text || held === text) return undefined;
  const message =
    `${REQUESTED_ADDRESSES_ANNOTATION}: network "${wanted.vmNetwork}": ${text} is not what IPAMClaim ${objectKey(claim)} was made with ` +
    `(${held ?? asked ?? 'any address'}), and the VM runs: stop it to change its addresses, or take the change back`;
  return { reason: EventReason.RequestedAddressesPending, message };
}

/** As a request would be written; undefined where it has none. */
function claimedAddressesText({ status }: IPAMClaim): string | undefined {
  const addresses = (status?.ips ?? []).map((ip) => ip.replace(/\/.*$/, ''));
  return addresses.length === 0 ? undefined : JSON.stringify(addresses);
}
