import type { AddressLease } from '../../../api/address-lease.js';
import { addressSpaceOf } from '../../../api/address-pool.js';
import type { IPAMClaim } from '../../../api/ipam-claim.js';
import { type ObjectMeta, objectKey } from '../../../api/meta.js';
import { IPS_ALLOCATED } from '../../../api/names.js';
import { describeSelection } from '../../../api/networks/network-selection.js';
import type { Client } from '../../../kube/client.js';
import type { Clock } from '../../../kube/clock.js';
import { isApiUnavailable, messageOf } from '../../../kube/errors.js';
import { ADDRESS_LEASES } from '../../../kube/resources.js';
import { abortable } from '../../../kube/transport/deadline.js';
import { type Address, formatAddress, parseAddressOrPrefix } from '../../../addressing/address/address.js';
import {
  type NetworkUser,
  isServingNamespace,
  nadNamespaceOfUser,
  userOfClaim,
} from '../../../addressing/directory/resolution.js';
import { derivedPoolName } from '../../../addressing/pool/derived-pool.js';
import { heldByMessage } from '../../../addressing/allocator/refusal-messages.js';
import { type LeaseRecord, holderOf, readLease } from '../../../addressing/lease/lease.js';
import { leaseName } from '../../../addressing/lease/lease-name.js';
import { type Attachment, userOfAttachment } from '../attachment.js';
import { CniCode, CniError, asReadError, readResult } from '../cni-error.js';
import type { CachedRead, ReadCache } from '../live-reads.js';
import { listLeasesOfOwner } from '../leases/lease-writer.js';
import type { PoolLookup } from '../pool-lookup.js';
import type { RequestContext } from '../request-queue.js';
import { type Grant, grantedAddress } from '../result.js';
import type { ClaimAuthorization } from './claim-authorization.js';

/** The claim that should hold a lease: its metadata, or the owner of the lease. */
type ClaimIdentity = Pick<ObjectMeta, 'namespace' | 'name' | 'uid'>;

/** A lease that the claim held at the time of the read, in the clock's ms. */
interface VerifiedLease {
  readonly record: LeaseRecord;
  readonly readAt: number;
}

interface ClaimGrantsDeps {
  readonly authorization: Pick<ClaimAuthorization, 'findConflict'>;
  readonly client: Pick<Client, 'listAs'>;
  readonly reads: ReadCache;
  readonly lookup: PoolLookup;
  readonly clock: Clock;
}

/** Returns the addresses of claims to attachments. It never writes: the leases exist already, and ipam records who uses them. */
export class ClaimGrants {
  readonly #deps: ClaimGrantsDeps;
  /** By UID of the claim: the address spaces in which it has leases, and when they were listed. */
  readonly #listed = new Map<string, { readonly spaces: Promise<readonly string[]>; readonly at: number }>();

  constructor(deps: ClaimGrantsDeps) {
    this.#deps = deps;
  }

  /**
   * Returns the addresses of a claim, or a message if they cannot be used yet. Does not wait.
   * @param since ignores reads of NADs and pools before this time, in the clock's ms
   * @throws {CniError} 11 if a read failed or another pod has the addresses; 100 if they are not in an address space of the interface's network
   */
  async attempt(
    attachment: Attachment,
    claim: IPAMClaim,
    call: RequestContext,
    since = this.#deps.reads.staleBefore,
  ): Promise<Grant | string> {
    const { authorization, lookup } = this.#deps;
    const shown = readStatusAddresses(claim);
    if (typeof shown === 'string') return shown;
    const spaces = this.#spacesOf(claim, call, since);
    const [obstacle, ...held] = await Promise.all([
      authorization.findConflict(attachment.pod, claim, call),
      ...shown.map(({ address }) => this.#held(address, claim, spaces, call)),
    ]);
    if (obstacle?.isOnItsWay === true) return obstacle.reason;
    if (obstacle !== undefined) throw new CniError(CniCode.TryAgain, obstacle.reason);
    const seen: VerifiedLease[] = [];
    for (const lease of held) {
      if (typeof lease === 'string') return `IPAMClaim ${objectKey(claim)} does not hold its addresses: ${lease}`;
      seen.push(lease);
    }
    await this.#requireSpace(attachment, claim, seen, call);
    await lookup.loadPools(
      seen.map(({ record }) => record.pool),
      call,
      since,
    );
    this.#requireRecent(claim, seen);
    const grant = seen.map(({ record }, index) =>
      grantedAddress(record, lookup.directory.pool(record.pool), shown[index]?.prefixLength),
    );
    return grant.sort((a, b) => a.address.family - b.address.family);
  }

  /** Checks the age of cached reads at the end, because the other reads took time. */
  #requireRecent(claim: IPAMClaim, seen: readonly VerifiedLease[]): void {
    const { clock, reads } = this.#deps;
    const oldest = Math.min(...seen.map(({ readAt }) => readAt));
    if (oldest < reads.staleBefore) {
      const ageMs = clock.now() - oldest;
      const message = `IPAMClaim ${objectKey(claim)}: the API server is not available, and the cached leases are stale (${Math.round(ageMs / 1000)} s old): the kubelet retries`;
      throw new CniError(CniCode.TryAgain, message);
    }
  }

  /**
   * Checks that the leases are of the interface's network, because NADs of several namespaces may name one network, each with its own address space.
   * The NAD in the claim proves nothing: the controller writes the one that the VM names.
   */
  async #requireSpace(
    attachment: Attachment,
    claim: IPAMClaim,
    seen: readonly VerifiedLease[],
    call: RequestContext,
  ): Promise<void> {
    const { lookup, clock } = this.#deps;
    const user = userOfAttachment(attachment);
    const findForeign = () => seen.find(({ record }) => !this.#isOfNetwork(record, user));
    if (findForeign() === undefined) return;
    // an earlier read may have come before a pool was created
    const pools = [derivedPoolName(nadNamespaceOfUser(user), user.network), ...seen.map(({ record }) => record.pool)];
    await lookup.loadPools(pools, call, clock.now());
    const foreign = findForeign();
    if (foreign === undefined) return;
    const { pod, selection } = attachment;
    const { addressSpace } = foreign.record;
    throw new CniError(
      CniCode.Refused,
      `IPAMClaim ${objectKey(claim)} has addresses in address space ${addressSpace}, but ${describeSelection(selection)} of pod ` +
        `${objectKey(pod)} uses NAD ${user.nad}, whose network is not in this address space: use a NAD of address space ${addressSpace}, ` +
        'or delete the claim',
    );
  }

  /** True if a pool that may serve the NAD is in the lease's address space: an administrator's, or the one derived in the namespace of the NAD. */
  #isOfNetwork({ pool, addressSpace }: LeaseRecord, user: NetworkUser): boolean {
    const { lookup } = this.#deps;
    return lookup.directory.poolsOf(user.network).some((each) => {
      const { name, nadNamespace } = each;
      const isOfNad =
        nadNamespace === undefined
          ? name === pool || isServingNamespace(each, user.namespace)
          : nadNamespace === nadNamespaceOfUser(user);
      // also if the rest of the spec is invalid now
      const written = lookup.writtenPool(name);
      return isOfNad && written !== undefined && addressSpaceOf(written) === addressSpace;
    });
  }

  /**
   * Returns the claim's lease of an address, or a message if the claim holds none.
   * @throws {CniError} 11 if the read failed and there is no recent cached read
   */
  async #held(
    address: Address,
    claim: IPAMClaim,
    known: Promise<readonly string[] | string>,
    call: RequestContext,
  ): Promise<VerifiedLease | string> {
    const spaces = await known;
    if (typeof spaces === 'string') return spaces;
    const held =
      (await this.#heldIn(spaces, address, claim, call)) ??
      (await this.#heldIn(await this.#listSpaces(claim, call), address, claim, call));
    return held ?? `there is no lease of ${formatAddress(address)}`;
  }

  /** @returns undefined if there is no lease of the address in these address spaces */
  async #heldIn(
    spaces: readonly string[],
    address: Address,
    claim: IPAMClaim,
    call: RequestContext,
  ): Promise<VerifiedLease | string | undefined> {
    let why: string | undefined;
    for (const space of spaces) {
      const { object, at } = await this.#readOrGet(leaseName(space, address), call);
      const held = object && readHeldLease(object, claim.metadata);
      if (held !== undefined && typeof held !== 'string') return { record: held, readAt: at };
      why ??= held;
    }
    return why;
  }

  /** Returns the address spaces to search: that of the claim's pool, then those of other pools that may have served it before. */
  async #spacesOf(claim: IPAMClaim, call: RequestContext, since: number): Promise<readonly string[] | string> {
    const { lookup } = this.#deps;
    const { directory } = lookup;
    const user = userOfClaim(claim);
    // also if an administrator's pool serves now
    await lookup.loadPools([derivedPoolName(nadNamespaceOfUser(user), user.network)], call, since);
    await lookup.load(user, call, since);
    const serving = directory.resolveUser(user);
    const spaces = new Set(serving.kind === 'served' ? [serving.pool.addressSpace] : []);
    for (const { name } of directory.poolsOf(user.network)) {
      const pool = directory.pool(name);
      if (pool !== undefined) spaces.add(pool.addressSpace);
    }
    if (spaces.size > 0) return [...spaces];
    const resolution = await lookup.resolve(user, call);
    return resolution.kind === 'served' ? [resolution.pool.addressSpace] : resolution.message;
  }

  /**
   * Returns the address spaces in which the claim has leases: it may have got them through a NAD of another namespace. The API server goes through
   * all leases, so they are listed at most once per --max-staleness. Several requests share a list, so none of them ends it.
   */
  #listSpaces(claim: IPAMClaim, { signal }: RequestContext): Promise<readonly string[]> {
    const { client, clock, reads } = this.#deps;
    const { uid = '' } = claim.metadata;
    for (const [each, { at }] of this.#listed) if (at < reads.staleBefore) this.#listed.delete(each);
    let spaces = this.#listed.get(uid)?.spaces;
    if (spaces === undefined) {
      const leases = listLeasesOfOwner(client, uid);
      spaces = leases.then((found) => [...new Set(found.map(({ addressSpace }) => addressSpace))]);
      this.#listed.set(uid, { spaces, at: clock.now() });
      // a list that failed says nothing
      spaces.catch(() => this.#listed.delete(uid));
    }
    return readResult(abortable(spaces, signal));
  }

  async #readOrGet(name: string, { signal }: RequestContext): Promise<CachedRead<AddressLease>> {
    const { reads } = this.#deps;
    try {
      return await reads.read(ADDRESS_LEASES, name, signal);
    } catch (error) {
      const seen = isApiUnavailable(error) ? reads.get(ADDRESS_LEASES, name) : undefined;
      if (seen?.object === undefined) throw asReadError(error);
      return seen;
    }
  }
}

/** Returns the addresses in the claim's status, or a message if there are none yet. */
function readStatusAddresses(claim: IPAMClaim): readonly ReturnType<typeof parseAddressOrPrefix>[] | string {
  const ips = claim.status?.ips ?? [];
  const conditions = claim.status?.conditions ?? [];
  const subject = `IPAMClaim ${objectKey(claim)}`;
  const allocated = conditions.find(({ type }) => type === IPS_ALLOCATED);
  if (allocated?.status !== 'True' || ips.length === 0) {
    const why = allocated === undefined || allocated.status === 'True' ? '' : `: ${allocated.message}`;
    return `${subject} has no addresses yet${why}`;
  }
  try {
    return ips.map(parseAddressOrPrefix);
  } catch (error) {
    return `${subject}: status.ips is invalid: ${messageOf(error)}`;
  }
}

/** Returns the parsed lease, or a message if the claim does not hold it. The lease is the authority; `status.ips` mirrors it. */
export function readHeldLease(lease: AddressLease, claim: ClaimIdentity): LeaseRecord | string {
  let record: LeaseRecord;
  try {
    record = readLease(lease);
  } catch (error) {
    return messageOf(error);
  }
  const { owner, releasedAt, metadata } = record;
  if (owner?.kind !== 'IPAMClaim' || owner.uid !== claim.uid) {
    return describeOtherHolder(record, claim);
  }
  const name = `AddressLease ${metadata.name}`;
  if (releasedAt !== undefined) return `${name} was released at ${new Date(releasedAt).toISOString()}`;
  return metadata.deletionTimestamp === undefined ? record : `${name} is being deleted`;
}

function describeOtherHolder(lease: LeaseRecord, { namespace = '', name }: ClaimIdentity): string {
  const { owner } = lease;
  const words = heldByMessage(lease, holderOf(lease), { namespace });
  const isNamesake = owner?.kind === 'IPAMClaim' && owner.namespace === namespace && owner.name === name;
  return isNamesake ? `${words}, a deleted claim of the same name` : words;
}
