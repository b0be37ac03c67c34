import {
  type Address,
  formatAddress,
  formatAddresses,
  formatFamily,
  readAddress,
  sameAddress,
} from '../addressing/address/address.js';
import { containsAddress, parseCidr } from '../addressing/address/cidr.js';
import type { ReasonOf } from '../api/conditions.js';
import type { IPAMClaim } from '../api/ipam-claim.js';
import { describeValue } from '../api/json.js';
import { type VirtualMachineInstance, type VmiInterfaceStatus, isReportedBy } from '../api/kubevirt.js';
import { GUEST_CONFIGURED } from '../api/names.js';
import { type ConditionOf, type ConditionValue, conditionOf, isSameCondition } from '../cluster/claim-conditions.js';
import type { GuestInterface } from './interfaces.js';
import { shownAddresses } from './leased-addresses.js';
import type { ObservedGuestWorkload } from './observed-workload.js';

/** A claim's condition changes so often on average, because a guest decides how often its addresses change. */
const CHANGE_MS = 30_000;
/** Changes that may come at once, as at the start of a guest. */
const BURST = 3;

/** What the condition GuestConfigured of a claim must be, and when to ask again. */
export interface GuestReport {
  readonly condition: ConditionValue | undefined;
  readonly again?: number;
  /** The condition differs from that of the claim. */
  readonly isChange?: true;
}

interface KnownGuest {
  /** The VMI and the claim's addresses. */
  readonly state: string;
  /** Since when, by the monotonic clock. */
  readonly since: number;
  /** The earlier changes are used up until then. */
  readonly usedUntil: number;
}

/** Decides the condition GuestConfigured of claims during one term of leadership: a guest gets time to configure its addresses. */
export class GuestReports {
  readonly #graceMs: number;
  /** By UID of the claim. */
  readonly #known = new Map<string, KnownGuest>();
  /** UIDs of claims, by workload. */
  readonly #claims = new Map<string, ReadonlySet<string>>();

  constructor(graceMs: number) {
    this.#graceMs = graceMs;
  }

  /** Forgets the claims that a workload had, except these. */
  retain(workload: string, claims: readonly IPAMClaim[]): void {
    const uids = new Set(claims.map(({ metadata }) => metadata.uid ?? ''));
    for (const uid of this.#claims.get(workload) ?? []) if (!uids.has(uid)) this.#known.delete(uid);
    if (uids.size > 0) this.#claims.set(workload, uids);
    else this.#claims.delete(workload);
  }

  /** @param now by the monotonic clock, in milliseconds */
  report(claim: IPAMClaim, each: GuestInterface | undefined, { vmi }: ObservedGuestWorkload, now: number): GuestReport {
    const claimed = shownAddresses(claim);
    if (vmi?.status?.phase !== 'Running' || each === undefined || each.isLinkDown || claimed === undefined) {
      this.#known.delete(claim.metadata.uid ?? '');
      return { condition: undefined };
    }
    const status = vmi.status.interfaces?.find(({ name }) => name === each.vmNetwork);
    const found = guestConfigured({ ...{ vmNetwork: each.vmNetwork, claimed, status }, ...launcherOf(each) });
    const { since, usedUntil } = this.#know(claim, vmi, now);
    return decide(found, conditionOf(claim, GUEST_CONFIGURED), {
      graceLeft: since + this.#graceMs - now,
      pause: usedUntil - (BURST - 1) * CHANGE_MS - now,
    });
  }

  /** Call it when a change of the condition was written. @param now by the monotonic clock */
  changed({ metadata: { uid = '' } }: IPAMClaim, now: number): void {
    const known = this.#known.get(uid);
    if (known === undefined) return;
    this.#known.set(uid, { ...known, usedUntil: Math.max(known.usedUntil, now) + CHANGE_MS });
  }

  /** The time begins anew with each start of the VM and each change of the claim. */
  #know(claim: IPAMClaim, vmi: VirtualMachineInstance, now: number): KnownGuest {
    const { uid = '' } = claim.metadata;
    const state = `${vmi.metadata.uid ?? ''} ${claim.status?.ips?.join() ?? ''}`;
    const before = this.#known.get(uid);
    if (before?.state === state) return before;
    const known = { state, since: now, usedUntil: -Infinity };
    this.#known.set(uid, known);
    return known;
  }
}

function decide(
  found: ConditionValue,
  before: ConditionValue | undefined,
  { graceLeft, pause }: { graceLeft: number; pause: number },
): GuestReport {
  if (found.status === 'False' && graceLeft > 0) {
    // a condition of an earlier start says nothing about this one
    return { condition: before?.status === 'False' ? before : undefined, again: graceLeft };
  }
  if (isSameCondition(before, found)) return { condition: found };
  return pause > 0 ? { condition: before, again: pause } : { condition: found, isChange: true };
}

function launcherOf({ isSriov, source }: GuestInterface): Pick<InterfaceReport, 'launcherHasAddresses'> {
  if (isSriov || source.kind !== 'claim' || source.nad === undefined) return { launcherHasAddresses: 'no' };
  const { delivery } = source.nad;
  if (delivery.kind === 'cni') return { launcherHasAddresses: 'yes' };
  const isSilent = delivery.kind === 'guest' && delivery.disablesContainerInterface;
  return { launcherHasAddresses: isSilent ? 'no' : 'by-itself' };
}

/** What is known of one interface of a running guest. */
export interface InterfaceReport {
  /** The name of its network in the VM's spec. */
  readonly vmNetwork: string;
  /** The addresses of its claim. */
  readonly claimed: readonly Address[];
  /** What KubeVirt shows; undefined: nothing yet. */
  readonly status: VmiInterfaceStatus | undefined;
  /**
   * `yes`: the launcher's interface has the claim's addresses, and KubeVirt shows these in place of the guest's; from 1.9 on only the IPv4 addresses of a
   * bridge. `by-itself`: it may have an IPv6 address that it made from a router advertisement.
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
  const isShown = found.some((address) => sameAddress(address, claimed));
  if (launcherHasAddresses === 'yes' && (isShown || !hasAgent(status))) {
    const message = `KubeVirt may show the ${family} address of the launcher on ${place}, not that of the guest`;
    return { status: 'Unknown', reason: 'ShownFromLauncher', message };
  }
  if (!hasAgent(status)) {
    const message = `Without a guest agent, nobody knows the addresses of the guest on ${place}: install the guest agent there`;
    return { status: 'Unknown', reason: 'NoGuestAgent', message };
  }
  if (isShown)
    return { status: 'True', reason: 'Configured', message: `The guest has ${formatAddress(claimed)} on ${place}` };
  if (launcherHasAddresses === 'by-itself' && claimed.family === 6 && found.length > 0) {
    const message = `KubeVirt may show an IPv6 address of the launcher on ${place}: set disableContainerInterface in the NetworkAttachmentDefinition`;
    return { status: 'Unknown', reason: 'ShownFromLauncher', message };
  }
  const isWithoutDhcp = launcherHasAddresses === 'yes' && claimed.family === 6;
  const remedy = isWithoutDhcp
    ? "use network data, because KubeVirt's DHCP gives no IPv6 address"
    : 'renew DHCP, or restart the VM';
  return mismatch(claimed, found, place, remedy);
}

function mismatch(claimed: Address, found: readonly Address[], place: string, todo: string): Finding {
  const remedy = `its claim says ${formatAddress(claimed)}: ${todo}`;
  if (found.length === 0) {
    const message = `The guest has no ${formatFamily(claimed.family)} address on ${place}, ${remedy}`;
    return { status: 'False', reason: 'AddressMissing', message };
  }
  const others = formatAddresses(found.slice(0, MAX_LISTED));
  return { status: 'False', reason: 'OtherAddress', message: `The guest has ${others} on ${place}, ${remedy}` };
}

function hasAgent(status: VmiInterfaceStatus | undefined): boolean {
  return status !== undefined && isReportedBy('guest-agent', status);
}

/** Returns the shown addresses of the same family, without link-local ones, which every interface has. */
function addressesOfFamily({ family }: Address, status: VmiInterfaceStatus | undefined): Address[] {
  const shown = (status?.ipAddresses ?? []).flatMap((text) => readAddress(text) ?? []);
  return shown.filter((address) => address.family === family && !containsAddress(LINK_LOCAL, address));
}
