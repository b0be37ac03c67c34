import type { IPAMClaim } from '../../api/ipam-claim.js';
import type { Condition } from '../../api/meta.js';
import type { Address, Family } from '../core/address.js';
import type { LeaseRecord } from '../core/lease.js';

/** A condition without what depends on when it was written. */
export type ConditionValue = Pick<Condition, 'status' | 'reason' | 'message'>;

/** What a claim's status shall say. */
export interface DesiredClaimStatus {
  /** With prefix length, IPv4 first. */
  ips: readonly string[];
  allocated: ConditionValue;
  /** Present while the claim asks for other addresses than it has. */
  request?: ConditionValue;
  /** Present while nobody knows who creates launchers, so that no pod gets the addresses. */
  launchers?: ConditionValue;
  ownerPod?: string;
}

/** Why addresses are taken: the claim has none (of a family) yet, or it asks for others. */
export type AllocationPurpose = 'need' | 'move';

/** The next thing to do about a claim; `reason` is for the log. After a step it is looked at again. */
export type ClaimStep =
  | { kind: 'none'; reason: string }
  /** Reads the claim from the API server. */
  | { kind: 'look'; reason: string }
  /** Lists the claim's pods from the API server. */
  | { kind: 'look-at-pods'; reason: string }
  /** Reads the VMI that has the name of the claim's owner: launchers name these UIDs. */
  | { kind: 'look-at-vmi'; claim: IPAMClaim; uids: readonly string[]; reason: string }
  | {
      kind: 'take';
      purpose: AllocationPurpose;
      addresses: readonly Address[];
      families: readonly Family[];
      reason: string;
    }
  /** Writes into leases for which MAC address they will be kept. */
  | { kind: 'note-mac'; leases: readonly LeaseRecord[]; mac: string; reason: string }
  | { kind: 'write'; verdict: DesiredClaimStatus; reason: string }
  | { kind: 'release'; leases: readonly LeaseRecord[]; reason: string };
