import type { ClaimOwner } from '../../api/ipam-claim.js';
import { describeValue } from '../../api/json.js';
import { parseMac } from '../../api/mac-address.js';
import type { ObservedWorkload } from './observed-workload.js';
import { requestingSpecOf } from './address-requests.js';

/** What a spec says about the MAC address of an interface: its addresses may be kept for it, and reserved for it. */
export type SpecifiedMac =
  | { kind: 'none' }
  /** Lower case, with colons. */
  | { kind: 'mac'; mac: string }
  /** `problem` names the interface and the value, and says what to do. */
  | { kind: 'invalid'; problem: string };

/** Of an interface, by its network's name in the VM: as the VM says; where only its VMI still has the interface, as that says. */
export function readSpecifiedMac(owner: ClaimOwner, vmNetwork: string, observed: ObservedWorkload): SpecifiedMac {
  const { vmi } = observed;
  const running = vmi?.owner.uid === owner.uid ? vmi.spec : undefined;
  const specs = [requestingSpecOf(owner, observed), running];
  const [found] = specs.flatMap((spec) => spec?.interfaces.get(vmNetwork) ?? []);
  if (found?.macAddress === undefined || found.macAddress === '') return { kind: 'none' };
  const mac = parseMac(found.macAddress);
  if (mac !== undefined) return { kind: 'mac', mac };
  const problem =
    `interface "${vmNetwork}": macAddress ${describeValue(found.macAddress)} is no MAC address, so no addresses are kept for it: ` +
    'write one like 02:00:00:00:00:01, or leave it out';
  return { kind: 'invalid', problem };
}
