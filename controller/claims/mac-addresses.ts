import type { ClaimOwner } from '../../api/ipam-claim.js';
import { describeValue } from '../../api/json.js';
import { parseMac } from '../../api/mac-address.js';
import type { ObservedWorkload } from './observed-workload.js';
import { requestingSpecOf } from './address-requests.js';

/** The MAC address that a spec gives an interface. Sticky addresses and reservations depend on it. */
export type SpecifiedMac =
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
