import { secondaryNetworks } from '../../api/kubevirt.js';
import type { ClaimOwner, IPAMClaim } from '../../api/ipam-claim.js';
import { isBeingDeleted, joinKey, objectKey } from '../../api/meta.js';
import { CLAIM_REQUESTED_ADDRESSES, EventReason, REQUESTED_ADDRESSES_ANNOTATION } from '../../api/names.js';
import { type AddressRequest, requestedAddresses } from '../../api/requested-addresses.js';
import type { Notice } from './action.js';
import type { WantedInterface } from './desired.js';
import type { Observed } from './observe.js';
import { type OwnedClaim, isInUse } from './ownership.js';

/** The addresses that users ask for in an annotation of the VM's template. */

/**
 * What the owner asks for on one of its networks, by name and NAD (`namespace/name`): nothing on a network that only its launchers still have.
 * A VM that is not seen yet asks through its VMI, to which KubeVirt copies the template's annotations.
 */
export function requestOf(
  owner: ClaimOwner,
  vmNetwork: string,
  nad: string,
  { vm, vmi, namespace }: Observed,
): AddressRequest {
  const template = vm?.spec?.template;
  const [annotations, spec] =
    vm?.metadata.uid === owner.uid
      ? [template?.metadata?.annotations, template?.spec]
      : [vmi?.metadata.annotations, vmi?.spec];
  const isNamed = secondaryNetworks(spec, namespace).some(
    (network) => network.name === vmNetwork && joinKey(network.nad.namespace, network.nad.name) === nad,
  );
  return isNamed ? requestedAddresses(annotations, vmNetwork) : { kind: 'none' };
}

/** The request as a claim carries it; undefined where there is none. */
export function requestText({ request }: WantedInterface): string | undefined {
  return request?.kind === 'addresses' ? JSON.stringify(request.addresses) : undefined;
}

/** What a claim can be made to fit: one that is in use keeps the addresses that it has. */
export function withoutLateRequest(owned: OwnedClaim, wanted: WantedInterface, observed: Observed): WantedInterface {
  if (wanted.request === undefined || !isInUse(owned, observed)) return wanted;
  const { request: _late, ...rest } = wanted;
  return rest;
}

/** Says that a request comes too late, while the VM runs with other addresses. */
export function noticeOfLateRequest(
  owned: OwnedClaim,
  wanted: WantedInterface,
  observed: Observed,
): Omit<Notice, 'regarding'> | undefined {
  const { claim } = owned;
  const text = requestText(wanted);
  if (text === undefined || isBeingDeleted(claim) || !isInUse(owned, observed)) return undefined;
  const asked = claim.metadata.annotations?.[CLAIM_REQUESTED_ADDRESSES];
  const held = addressesOf(claim);
  if (asked === text || held === text) return undefined;
  const message =
    `${REQUESTED_ADDRESSES_ANNOTATION}: network "${wanted.vmNetwork}": ${text} is not what IPAMClaim ${objectKey(claim)} was made with ` +
    `(${held ?? asked ?? 'any address'}), and the VM runs: stop it to change its addresses, or take the change back`;
  return { reason: EventReason.RequestedAddressesPending, message };
}

/** As a request would be written; undefined where it has none. */
function addressesOf({ status }: IPAMClaim): string | undefined {
  const addresses = (status?.ips ?? []).map((ip) => ip.replace(/\/.*$/, ''));
  return addresses.length === 0 ? undefined : JSON.stringify(addresses);
}
