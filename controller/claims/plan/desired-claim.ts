import type { EventReason } from '../../../api/event-reasons.js';
import type { ClaimOwner } from '../../../api/ipam-claim.js';
import { parseMac } from '../../../api/mac-address.js';
import type { AddressRequest } from '../../../api/networks/requested-addresses.js';
import type { ObservedVmi, ObservedWorkload } from './observed-workload.js';

/** The claim that an interface should have. */
export interface DesiredClaim extends GuestMacs {
  /** The network's name in the VM's spec. */
  vmNetwork: string;
  /** The CNI network's name. */
  network: string;
  /** `namespace/name` of the NAD. */
  nad: string;
  podInterface: string;
  /** Absent if the interface requests no addresses. `late`: the claim is in use, so its request does not change. */
  request?: Exclude<AddressRequest, { kind: 'none' }> | { kind: 'late' };
  /** As in the spec; lower case, with colons. */
  mac?: string;
  /** When the interface was observed, in milliseconds since the epoch. */
  observedAt: number;
}

/** An invalid NAD, request or MAC address. It affects only its own interface. */
export interface InterfaceProblem {
  reason: EventReason;
  message: string;
}

/** The MAC addresses of a guest's interface. */
interface GuestMacs {
  /** The guest has the interface, whether its MAC address is known or not. */
  readonly isAttached: boolean;
  /** That of the VMI's spec, else that of libvirt's domain, which KubeVirt generates at each start. */
  readonly runningMac?: string;
  /** The same, by which DHCP recognizes the guest. Absent if the address goes to the pod: then KubeVirt configures the guest. */
  readonly guestMac?: string;
}

export function findGuestMacs(
  owner: ClaimOwner,
  { vmNetwork, nad }: { vmNetwork: string; nad: string },
  { vmi, networks }: ObservedWorkload,
): GuestMacs {
  if (vmi?.owner.uid !== owner.uid || !hasAttached(vmi, vmNetwork, nad)) return { isAttached: false };
  const runningMac = macOf(vmi, vmNetwork);
  if (runningMac === undefined) return { isAttached: true };
  const lookup = networks.get(nad);
  const isGuests = lookup?.found === true && lookup.delivery.kind === 'guest';
  return { isAttached: true, runningMac, ...(isGuests && { guestMac: runningMac }) };
}

/** The VM's template may name another NAD already, which the guest gets when it starts again. */
function hasAttached(vmi: ObservedVmi, vmNetwork: string, nad: string): boolean {
  const attached = vmi.spec.servedNetworks.get(vmNetwork);
  return !vmi.hasEnded && attached?.nadKey === nad && !attached.isUnplugRequested;
}

function macOf({ spec, reported }: ObservedVmi, vmNetwork: string): string | undefined {
  const specified = parseMac(spec.interfaces.get(vmNetwork)?.macAddress ?? '');
  return specified ?? parseMac(reported.find(({ name }) => name === vmNetwork)?.mac ?? '');
}
