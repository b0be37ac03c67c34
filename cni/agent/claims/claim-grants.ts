import { type IPAMClaim, claimNadOf } from '../../../api/ipam-claim.js';
import { joinKey, objectKey } from '../../../api/meta.js';
import { describeSelection } from '../../../api/network-selection.js';
import { IPAM_CLAIMS } from '../../../kube/resources.js';
import type { PoolDirectory } from '../../../addressing/directory/directory.js';
import { CniCode, CniError, readResult } from '../cni-error.js';
import type { Attachment } from '../attachment.js';
import type { Grant } from '../result.js';
import { type BoundedWaitDeps, type RequestContext, BoundedWait } from '../request-context.js';
import { type StatusAddress, grantedAddress, readStatusAddresses } from './lease-checks.js';
import type { ClaimLeaseReader, VerifiedLease } from './claim-lease-reader.js';
import type { ClaimAuthorization } from './claim-authorization.js';
import type { OtherUsers } from './other-users.js';
import type { ReadCache } from './read-cache.js';

/** The addresses that an attachment got, and their claim and leases. */
export interface ClaimGrant {
  readonly grant: Grant;
  readonly claim: IPAMClaim;
  /** Names of the leases. */
  readonly leases: readonly string[];
}

export interface ClaimGrantsDeps extends BoundedWaitDeps {
  readonly authorization: Pick<ClaimAuthorization, 'authorize'>;
  readonly leases: Pick<ClaimLeaseReader, 'held'>;
  readonly users: Pick<OtherUsers, 'findConflict'>;
  readonly reads: ReadCache;
  readonly directory: Pick<PoolDirectory, 'pool' | 'resolveUser'>;
  readonly maxStalenessMs: number;
}

/** Returns the addresses of claims to attachments. It never writes: the leases exist already, and ipam records who uses them. */
export class ClaimGrants {
  readonly #deps: ClaimGrantsDeps;

  constructor(deps: ClaimGrantsDeps) {
    this.#deps = deps;
  }

  /**
   * Returns the addresses of a claim. Waits until the claim holds their leases.
   * @param claim the authorized claim, as read recently
   * @throws {CniError} 11 with the reason of the wait; 100 if the attachment is not authorized any more
   */
  async grant(attachment: Attachment, claim: IPAMClaim, call: RequestContext): Promise<ClaimGrant> {
    const wait = new BoundedWait(this.#deps, attachment.pod.metadata.uid, call);
    let current = claim;
    for (let attempts = 0; ; attempts++) {
      const granted = await this.attempt(attachment, current, call);
      if (typeof granted !== 'string') return granted;
      // the cached read may be stale, so the first retry does not wait
      if (attempts === 0) wait.check(granted);
      else await wait.pause(granted);
      current = await this.#readAgain(attachment, current, call);
    }
  }

  /**
   * Tries once, without waiting.
   * @returns a message if the addresses cannot be used yet
   * @throws {CniError} 11 if a read failed or another pod has the addresses; 100 if they are in another address space than the interface
   */
  async attempt(attachment: Attachment, claim: IPAMClaim, call: RequestContext): Promise<ClaimGrant | string> {
    const shown = readStatusAddresses(claim);
    if (typeof shown === 'string') return shown;
    const { leases, users } = this.#deps;
    const [obstacle, ...held] = await Promise.all([
      users.findConflict(attachment.pod, claim, call),
      ...shown.map(({ address }) => leases.held(address, claim, call)),
    ]);
    if (obstacle?.isOnItsWay === true) return obstacle.reason;
    if (obstacle !== undefined) throw new CniError(CniCode.TryAgain, obstacle.reason);
    const seen: VerifiedLease[] = [];
    for (const lease of held) {
      if (typeof lease === 'string') return `IPAMClaim ${objectKey(claim)} does not hold its addresses: ${lease}`;
      seen.push(lease);
    }
    this.#requireRecent(claim, seen);
    this.#requireSpace(attachment, claim, seen);
    return this.#grantOf(claim, shown, seen);
  }

  /** Checks the age of cached reads at the end, because the other reads took time. */
  #requireRecent(claim: IPAMClaim, seen: readonly VerifiedLease[]): void {
    const { clock, maxStalenessMs } = this.#deps;
    const ageMs = clock.now() - Math.min(...seen.map(({ readAt }) => readAt));
    if (ageMs > maxStalenessMs) {
      const message = `IPAMClaim ${objectKey(claim)}: the API server is not available, and the cached leases are stale (${Math.round(ageMs / 1000)} s old): the kubelet retries`;
      throw new CniError(CniCode.TryAgain, message);
    }
  }

  /** Checks the address space, because a network may have a NAD and an address space in each of several namespaces. */
  #requireSpace({ pod, network, selection }: Attachment, claim: IPAMClaim, seen: readonly VerifiedLease[]): void {
    const nad = joinKey(selection.nad.namespace, selection.nad.name);
    if (claimNadOf(claim) === nad) return;
    const serving = this.#deps.directory.resolveUser({ namespace: pod.metadata.namespace, network, nad });
    const isSame =
      serving.kind === 'served' && seen.every(({ record }) => record.addressSpace === serving.pool.addressSpace);
    if (isSame) return;
    const why =
      serving.kind === 'served'
        ? `whose pool ${serving.pool.name} is in address space ${serving.pool.addressSpace}`
        : `and ${serving.message}`;
    const spaces = [...new Set(seen.map(({ record }) => record.addressSpace))].join(', ');
    throw new CniError(
      CniCode.Refused,
      `IPAMClaim ${objectKey(claim)} has addresses in address space ${spaces}, but ${describeSelection(selection)} of pod ` +
        `${objectKey(pod)} uses NAD ${nad}, ${why}: use the NAD of the claim, or a claim for this NAD`,
    );
  }

  #grantOf(claim: IPAMClaim, shown: readonly StatusAddress[], seen: readonly VerifiedLease[]): ClaimGrant {
    const grant = shown.map((each, index) =>
      grantedAddress(each, this.#deps.directory.pool(seen[index]?.record.pool ?? '')),
    );
    grant.sort((a, b) => a.address.family - b.address.family);
    return { grant, claim, leases: seen.map(({ record }) => record.metadata.name) };
  }

  /** Reads the claim again. A new claim of the same name must be authorized again. */
  async #readAgain(attachment: Attachment, { metadata }: IPAMClaim, call: RequestContext): Promise<IPAMClaim> {
    const key = objectKey({ metadata });
    await readResult(this.#deps.reads.read(IPAM_CLAIMS, key, call.signal));
    const authorized = await this.#deps.authorization.authorize(attachment, call);
    if (authorized.kind === 'claim') return authorized.claim;
    throw new CniError(CniCode.TryAgain, `IPAMClaim ${key} was deleted just now: the kubelet retries`);
  }
}
