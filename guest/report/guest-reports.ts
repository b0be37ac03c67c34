import type { IPAMClaim } from '../../api/ipam-claim.js';
import type { VirtualMachineInstance } from '../../api/kubevirt.js';
import { GUEST_CONFIGURED } from '../../api/names.js';
import { type ConditionValue, conditionOf } from '../../cluster/claim-conditions.js';
import type { GuestInterface } from '../interfaces.js';
import { shownAddresses } from '../leased-addresses.js';
import type { ObservedGuestWorkload } from '../observed-workload.js';
import { type InterfaceReport, guestConfigured } from './guest-configured.js';

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
    if (vmi?.status?.phase !== 'Running' || each === undefined || claimed === undefined) {
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
  if (isSame(before, found)) return { condition: found };
  return pause > 0 ? { condition: before, again: pause } : { condition: found, isChange: true };
}

function launcherOf({ isSriov, source }: GuestInterface): Pick<InterfaceReport, 'launcherHasAddresses'> {
  if (isSriov || source.kind !== 'claim' || source.nad === undefined) return { launcherHasAddresses: 'no' };
  const { delivery } = source.nad;
  if (delivery.kind === 'cni') return { launcherHasAddresses: 'yes' };
  const isSilent = delivery.kind === 'guest' && delivery.disablesContainerInterface;
  return { launcherHasAddresses: isSilent ? 'no' : 'by-itself' };
}

function isSame(before: ConditionValue | undefined, found: ConditionValue): boolean {
  return before?.status === found.status && before.reason === found.reason && before.message === found.message;
}
