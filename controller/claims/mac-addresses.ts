import { type ClaimOwner, type IPAMClaim, macSinceText, recordedMacOf, timedMacOf } from '../../api/ipam-claim.js';
import { describeValue } from '../../api/json.js';
import { parseMac } from '../../api/mac-address.js';
import type { ObservedWorkload } from './observed-workload.js';
import { requestingSpecOf } from './address-requests.js';
import { CLAIM_MAC_SINCE } from '../../api/names.js';
import type { DesiredClaim } from './desired-claim.js';

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
