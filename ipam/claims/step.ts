import type { IPAMClaim } from '../../api/ipam-claim.js';
import type { ConditionOf } from '../../cluster/claim-conditions.js';
import type { Address, Family } from '../../addressing/address/address.js';
import type { LeaseRecord } from '../../addressing/lease/lease.js';

export interface DesiredClaimStatus {
  /** With prefix length, IPv4 first. */
  ips: readonly string[];
  allocated: ConditionOf<'IPsAllocated'>;
  /** Present while the claim requests other addresses than it has. */
  request?: ConditionOf<'RequestHonoured'>;
  /** Present while the user who creates launchers is unknown, so that no pod gets the addresses. */
  launchers?: ConditionOf<'LaunchersVerified'>;
  /** Present while the claim has an address of a draining range. */
  draining?: ConditionOf<'AddressDraining'>;
  ownerPod?: string;
}

/** Why addresses are allocated: the claim lacks one of a family, it requests others, or it has one of a draining range. */
export type AllocationPurpose = 'need' | 'move' | 'drain';

/** Why an address is shown without a probe: no responder answered in time, its pool is not probed for a while, or a guest may have it already. */
export type SkipCause = 'NoAnswer' | 'ProbingStopped' | 'NotApplicable';

/** The next step for a claim; `reason` is for the log. After each step the claim is observed and planned again. */
export type ClaimStep =
  | { kind: 'none'; reason: string }
  /** Reads the claim from the API server. */
  | { kind: 'read-claim'; reason: string }
  /** Lists the claim's pods from the API server. */
  | { kind: 'list-pods'; reason: string }
  /** Reads the pod that its status names as its owner. */
  | { kind: 'read-owner-pod'; reason: string }
  /** Reads the VMI that has the name of the claim's owner; `uids` are the UIDs that launchers name. */
  | { kind: 'read-vmi'; claim: IPAMClaim; uids: readonly string[]; reason: string }
  | {
      kind: 'allocate';
      purpose: AllocationPurpose;
      addresses: readonly Address[];
      families: readonly Family[];
      reason: string;
    }
  /** Waits for the answers to probes, until a time of the clock, in ms. Each change of a lease syncs the claim again. */
  | { kind: 'await-probe'; until: number; reason: string }
  /** Ends a probe without an answer. */
  | { kind: 'skip-probe'; lease: LeaseRecord; cause: SkipCause; reason: string }
  /** Keeps an address from everybody for a while, because a host with this MAC address has it. */
  | { kind: 'quarantine'; lease: LeaseRecord; mac: string; isRequested: boolean; reason: string }
  /** Records in leases the MAC address for which they will be sticky. */
  | { kind: 'record-mac'; leases: readonly LeaseRecord[]; mac: string; reason: string }
  /** Records in leases the VM that has adopted the claim. */
  | { kind: 'record-workload'; leases: readonly LeaseRecord[]; workloadUID: string; reason: string }
  | { kind: 'write-status'; desired: DesiredClaimStatus; reason: string }
  | { kind: 'release'; leases: readonly LeaseRecord[]; reason: string };

export type ClaimStepOf<K extends ClaimStep['kind']> = Extract<ClaimStep, { kind: K }>;
