import type { VmiInterfaceStatus } from '../../api/kubevirt.js';
import { describeValue } from '../../api/json.js';
import type { ReasonOf } from '../../api/conditions.js';
import type { ConditionOf, ConditionValue } from '../../cluster/claim-conditions.js';
import {
  type Address,
  formatAddress,
  formatFamily,
  readAddress,
  sameAddress,
} from '../../addressing/address/address.js';
import { containsAddress, parseCidr } from '../../addressing/address/cidr.js';

/** What is known of one interface of a running guest. */
export interface InterfaceReport {
  /** The name of its network in the VM's spec. */
  readonly vmNetwork: string;
  /** The addresses of its claim. */
  readonly claimed: readonly Address[];
  /** What KubeVirt shows; undefined: nothing yet. */
  readonly status: VmiInterfaceStatus | undefined;
  /**
   * `yes`: the launcher's interface has the claim's addresses, and KubeVirt shows these in place of the guest's. `by-itself`: it may have an IPv6 address that it
   * made from a router advertisement.
   */
  readonly launcherHasAddresses: 'yes' | 'by-itself' | 'no';
}

interface Finding {
  readonly status: ConditionValue['status'];
  readonly reason: ReasonOf<'GuestConfigured'>;
  readonly message: string;
}

const LINK_LOCAL = parseCidr('fe80::/10');
/** Addresses that a message lists. */
const MAX_LISTED = 3;
/** A problem of one family is not hidden by the other family. */
const WORST_FIRST: readonly ConditionValue['status'][] = ['False', 'Unknown', 'True'];

/**
 * Compares the addresses of a guest with those of its claim. Pure. Guests write what their agents report, so texts of it are only read as addresses and
 * never repeated.
 */
export function guestConfigured(reported: InterfaceReport): ConditionOf<'GuestConfigured'> {
  const findings = reported.claimed.map((address) => findingOf(address, reported));
  const worst = WORST_FIRST.find((status) => findings.some((finding) => finding.status === status)) ?? 'Unknown';
  const shown = findings.filter(({ status }) => status === worst);
  return {
    status: worst,
    reason: shown[0]?.reason ?? 'NoAddresses',
    message: [...new Set(shown.map(({ message }) => message))].join('. '),
  };
}

function findingOf(claimed: Address, { vmNetwork, status, launcherHasAddresses }: InterfaceReport): Finding {
  const found = addressesOfFamily(claimed, status);
  const place = describeValue(vmNetwork);
  const family = formatFamily(claimed.family);
  if (launcherHasAddresses === 'yes' && (found.length > 0 || !hasAgent(status))) {
    const message = `KubeVirt shows the ${family} address of the launcher on ${place}, not that of the guest`;
    return { status: 'Unknown', reason: 'ShownFromLauncher', message };
  }
  if (!hasAgent(status)) {
    const message = `Without a guest agent, nobody knows the addresses of the guest on ${place}: install the guest agent there`;
    return { status: 'Unknown', reason: 'NoGuestAgent', message };
  }
  if (found.some((address) => sameAddress(address, claimed)))
    return { status: 'True', reason: 'Configured', message: `The guest has ${formatAddress(claimed)} on ${place}` };
  if (launcherHasAddresses === 'by-itself' && claimed.family === 6 && found.length > 0) {
    const message = `KubeVirt may show an IPv6 address of the launcher on ${place}: set disableContainerInterface in the NetworkAttachmentDefinition`;
    return { status: 'Unknown', reason: 'ShownFromLauncher', message };
  }
  return mismatch(claimed, found, place);
}

function mismatch(claimed: Address, found: readonly Address[], place: string): Finding {
  const remedy = `its claim says ${formatAddress(claimed)}: renew DHCP, or restart the VM`;
  if (found.length === 0) {
    const message = `The guest has no ${formatFamily(claimed.family)} address on ${place}, ${remedy}`;
    return { status: 'False', reason: 'AddressMissing', message };
  }
  const others = found.slice(0, MAX_LISTED).map(formatAddress).join(', ');
  return { status: 'False', reason: 'OtherAddress', message: `The guest has ${others} on ${place}, ${remedy}` };
}

function hasAgent(status: VmiInterfaceStatus | undefined): boolean {
  return status?.infoSource?.split(',').some((source) => source.trim() === 'guest-agent') === true;
}

/** Returns the shown addresses of the same family, without link-local ones, which every interface has. */
function addressesOfFamily({ family }: Address, status: VmiInterfaceStatus | undefined): Address[] {
  const shown = (status?.ipAddresses ?? []).flatMap((text) => readAddress(text) ?? []);
  return shown.filter((address) => address.family === family && !containsAddress(LINK_LOCAL, address));
}
