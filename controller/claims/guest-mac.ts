import type { ClaimOwner } from '../../api/ipam-claim.js';
import { parseMac } from '../../api/mac-address.js';
import type { DesiredClaim } from './desired-claim.js';
import type { ObservedWorkload } from './observed-workload.js';
import type { ObservedVmi } from './owner-spec.js';

/**
 * Returns the MAC address by which DHCP recognizes the guest on an interface: that of the VMI's spec, else that of libvirt's domain, which KubeVirt
 * generates at each start. Undefined while no guest runs, and if the address goes to the pod: then KubeVirt configures the guest.
 */
export function findGuestMac(
  owner: ClaimOwner,
  { vmNetwork, nad }: Pick<DesiredClaim, 'vmNetwork' | 'nad'>,
  { vmi, networks }: ObservedWorkload,
): string | undefined {
  const lookup = networks.get(nad);
  if (lookup?.found !== true || lookup.delivery.kind !== 'guest') return undefined;
  return vmi?.owner.uid === owner.uid && hasAttached(vmi, vmNetwork, nad) ? macOf(vmi, vmNetwork) : undefined;
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
