import { secondaryNetworks } from '../../api/kubevirt.js';
import type { ClaimOwner, IPAMClaim } from '../../api/ipam-claim.js';
import { isBeingDeleted, joinKey, objectKey } from '../../api/meta.js';
import { CLAIM_REQUESTED_ADDRESSES, EventReason, REQUESTED_ADDRESSES_ANNOTATION } from '../../api/names.js';
import { type AddressRequest, requestedNetworks, requestedAddresses } from '../../api/requested-addresses.js';
import type { WorkloadEvent } from './workload-event.js';
import type { DesiredClaim } from './desired-claim.js';
import type { ObservedWorkload } from './observed-workload.js';
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
  const { annotations, spec } = askedBy(owner, observed);
  // only those are read: this is asked for each network of a VM, which may have thousands
  const networks = (spec?.networks ?? []).filter(({ name }) => name === vmNetwork);
  const isNamed = secondaryNetworks({ networks }, observed.namespace).some(
    (network) => joinKey(network.nad.namespace, network.nad.name) === nad,
  );
  return isNamed ? requestedAddresses(annotations, vmNetwork) : { kind: 'none' };
}

/**
 * What the owner asks for in vain: on networks that it does not have, or that have no claims. What it asks for on its primary network is between it
 * and who serves that.
 * @param served the networks that have claims, by their names in the VM's spec
 * @returns problems, which say what to do
 */
export function unservedRequests(owner: ClaimOwner, served: ReadonlySet<string>, observed: ObservedWorkload): string[] {
  if (!observed.canCreateClaims) return [];
  const { annotations, spec } = askedBy(owner, observed);
  const names = new Set((spec?.networks ?? []).map(({ name }) => name));
  const secondary = new Map(secondaryNetworks(spec, observed.namespace).map((network) => [network.name, network]));
  const asked = requestedNetworks(annotations);
  const unknown = asked.filter((name) => !names.has(name));
  const unserved = asked.flatMap((name) => {
    const network = secondary.get(name);
    if (network === undefined || network.isUnplugRequested || served.has(name)) return [];
    const nad = joinKey(network.nad.namespace, network.nad.name);
    const lookup = observed.networks.get(nad);
    // what else is wrong with a NAD is told anyway
    return lookup?.found && lookup.config.ok ? [describeUnsupportedNetwork(name, nad)] : [];
  });
  return unknown.length === 0 ? unserved : [describeUnknownNetworks(unknown, [...names]), ...unserved];
}

/** What the owner says; a VM that is not seen yet speaks through its VMI. */
export function askedBy(owner: ClaimOwner, { vm, vmi }: ObservedWorkload) {
  const template = vm?.spec?.template;
  return vm?.metadata.uid === owner.uid
    ? { annotations: template?.metadata?.annotations, spec: template?.spec }
    : { annotations: vmi?.metadata.annotations, spec: vmi?.spec };
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
