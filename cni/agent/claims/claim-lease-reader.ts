import type { AddressLease } from '../../../api/address-lease.js';
import type { IPAMClaim } from '../../../api/ipam-claim.js';
import type { Clock } from '../../../kube/clock.js';
import { ADDRESS_LEASES } from '../../../kube/resources.js';
import type { PoolDirectory } from '../../../addressing/directory/directory.js';
import { type Address, formatAddress } from '../../../addressing/address/address.js';
import type { LeaseRecord } from '../../../addressing/lease/lease.js';
import { leaseName } from '../../../addressing/lease/lease-name.js';
import { asReadError, isApiUnavailable } from '../cni-error.js';
import type { RequestContext } from '../request-context.js';
import { readHeldLease } from './lease-checks.js';
import type { CachedRead, ReadCache } from './read-cache.js';

/** A lease that the claim held at the time of the read, in the clock's ms. */
export interface VerifiedLease {
  readonly record: LeaseRecord;
  readonly readAt: number;
}

export interface ClaimLeaseReaderDeps {
  readonly reads: ReadCache;
  readonly directory: Pick<PoolDirectory, 'resolve' | 'poolsOf' | 'pool'>;
  readonly clock: Clock;
  readonly maxStalenessMs: number;
}

/** Reads the leases of claims by name. */
export class ClaimLeaseReader {
  readonly #deps: ClaimLeaseReaderDeps;

  constructor(deps: ClaimLeaseReaderDeps) {
    this.#deps = deps;
  }

  /**
   * Returns the claim's lease of an address, or a message if the claim holds none.
   * @throws {CniError} 11 if the read failed and there is no recent cached read
   */
  async held(address: Address, claim: IPAMClaim, call: RequestContext): Promise<VerifiedLease | string> {
    const spaces = this.#spacesOf(claim);
    if (typeof spaces === 'string') return spaces;
    let why: string | undefined;
    for (const space of spaces) {
      const { object, at } = await this.#readOrGet(leaseName(space, address), call);
      const held = object && readHeldLease(object, claim);
      if (held !== undefined && typeof held !== 'string') return { record: held, readAt: at };
      why ??= held;
    }
    return why ?? `there is no lease of ${formatAddress(address)}`;
  }

  /** Returns the address spaces to search: that of the claim's pool, then those of other pools of the network. */
  #spacesOf(claim: IPAMClaim): readonly string[] | string {
    const { directory } = this.#deps;
    const resolution = directory.resolve(claim);
    const spaces = new Set(resolution.kind === 'served' ? [resolution.pool.addressSpace] : []);
    for (const { name } of directory.poolsOf(claim.spec.network)) {
      const pool = directory.pool(name);
      if (pool !== undefined) spaces.add(pool.addressSpace);
    }
    if (spaces.size > 0 || resolution.kind === 'served') return [...spaces];
    return resolution.message;
  }

  async #readOrGet(name: string, { signal }: RequestContext): Promise<CachedRead<AddressLease>> {
    const { reads, clock, maxStalenessMs } = this.#deps;
    try {
      return await reads.read(ADDRESS_LEASES, name, signal);
    } catch (error) {
      const seen = isApiUnavailable(error) ? reads.get(ADDRESS_LEASES, name, clock.now() - maxStalenessMs) : undefined;
      if (seen?.object === undefined) throw asReadError(error);
      return seen;
    }
  }
}
