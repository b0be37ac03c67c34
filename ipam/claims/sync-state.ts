import type { IPAMClaim } from '../../api/ipam-claim.js';
import { isNewer } from '../../api/meta.js';
import type { Family } from '../../addressing/address/address.js';
import type { AllocationRefusal } from '../../addressing/allocator/allocator.js';
import type { LeaseRecord } from '../../addressing/lease/lease.js';
import type { LeaseBook } from '../leases/lease-book.js';
import type { ClaimPod } from './running/claim-pods.js';
import type { AllocationPurpose, ClaimStepOf } from './step.js';

/** What a sync has learned beyond the caches. */
export interface Findings {
  /** The claim was read live. */
  isLive: boolean;
  /** Its pods were listed live after its status was last written. */
  arePodsLive: boolean;
  /** The pod that its status named when that pod was read live. */
  readOwner?: string;
  /** Why the claim cannot get the addresses that it lacks (`need`) or requests instead (`move`). */
  need?: RefusedStep;
  move?: RefusedStep;
  /** Why the claim cannot get another address of a family than the one that is draining. */
  drain?: DrainRefusals;
}

/** Why addresses were refused, and the families of which any address was asked for. */
interface RefusedStep extends AllocationRefusal {
  readonly families?: readonly Family[];
}

export type DrainRefusals = Readonly<Partial<Record<Family, RefusedStep>>>;

/** The state of one sync: the newest version of its claim, and what its steps have shown. Only its methods change it. */
export class ClaimSyncState {
  claim: IPAMClaim | undefined;
  findings: Findings = { isLive: false, arePodsLive: false };
  /** Pods of the last live list. */
  livePods: readonly ClaimPod[] = [];
  /** The owner pod that only a live read has shown. */
  hiddenOwner: ClaimPod | undefined;
  /** UIDs of claims of this name that a live read has proven gone. */
  readonly gone = new Set<string>();
  /** The claim's leases that existed before its last live read. */
  #knownLeases: ReadonlySet<LeaseRecord> = new Set();

  constructor(claim: IPAMClaim | undefined) {
    this.claim = claim;
  }

  /** Call it before the claim is read live or written. */
  beforeRead(book: Pick<LeaseBook, 'ofExactClaim'>): void {
    this.#knownLeases = new Set(this.claim && book.ofExactClaim(this.claim));
  }

  /** @param owners UIDs of the claims that had leases before the read */
  onClaimRead(claim: IPAMClaim | undefined, owners: readonly string[]): void {
    // a claim exists before its leases; later leases may belong to a newer claim
    for (const uid of owners) if (uid !== claim?.metadata.uid) this.gone.add(uid);
    this.claim = claim;
    const { arePodsLive, readOwner } = this.findings;
    this.findings = { isLive: true, arePodsLive, ...(readOwner !== undefined && { readOwner }) };
  }

  onPodsListed(pods: readonly ClaimPod[]): void {
    this.livePods = pods;
    this.findings.arePodsLive = true;
  }

  /** @param pod undefined if it does not use the claim any more */
  onOwnerRead(name: string, pod: ClaimPod | undefined): void {
    this.hiddenOwner = pod;
    this.findings.readOwner = name;
  }

  /** Another process may show a lease that is newer than the last live read. */
  onLeasesObserved(held: readonly LeaseRecord[]): void {
    if (!held.every((lease) => this.#knownLeases.has(lease))) this.findings.isLive = false;
  }

  onRefused(
    { purpose, families }: Pick<ClaimStepOf<'allocate'>, 'purpose' | 'families'>,
    refusal: AllocationRefusal,
  ): void {
    const refused = { ...refusal, families };
    if (purpose !== 'drain') this.findings[purpose] = refused;
    else for (const family of families) this.findings.drain = { ...this.findings.drain, [family]: refused };
  }

  onAllocated(purpose: AllocationPurpose): void {
    // it may need other addresses now
    if (purpose === 'move') delete this.findings.need;
  }

  onStatusWritten(claim: IPAMClaim): void {
    this.claim = claim;
    // a pod that was created since the last list may have read the previous status
    this.livePods = [];
    this.findings = { ...this.findings, isLive: true, arePodsLive: false };
  }
}

/** Our own last writes of claims, until the cache has caught up. Without them, each write would cause a needless second one. */
export class WrittenClaims {
  readonly #claims = new Map<string, IPAMClaim>();

  wrote(key: string, claim: IPAMClaim): void {
    this.#claims.set(key, claim);
  }

  /** Returns the newer of the cached claim and our own last write. */
  newest(key: string, cached: IPAMClaim | undefined): IPAMClaim | undefined {
    const own = this.#claims.get(key);
    if (own === undefined || isBehind(cached, own)) return own ?? cached;
    this.#claims.delete(key);
    return cached;
  }
}

function isBehind(cached: IPAMClaim | undefined, own: IPAMClaim): boolean {
  if (cached === undefined || cached.metadata.uid !== own.metadata.uid) return false;
  return isNewer(own.metadata.resourceVersion ?? '', cached.metadata.resourceVersion ?? '');
}
