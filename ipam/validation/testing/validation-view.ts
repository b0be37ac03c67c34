import type { AddressPool } from '../../../api/address-pool.js';
import { parseAddress } from '../../../addressing/address/address.js';
import { nadRightsFrom } from '../../../api/networks/nad-rights.js';
import { POOL_INDEXES } from '../../../cluster/watch-specs.js';
import { PoolDirectory } from '../../../addressing/directory/directory.js';
import type { PoolLease, ValidationView } from '../review.js';
import type { ParsedNad } from '../../../cluster/transforms.js';
import { cacheOf } from '../../../test/objects/pool-objects.js';

/** What a review of pools and NADs sees, for tests. */
export interface ValidatedObjects {
  pools?: readonly AddressPool[];
  nads?: readonly ParsedNad[];
  /** By pool. */
  leases?: Readonly<Record<string, readonly PoolLease[]>>;
  enforceAddressOwnership?: boolean;
}

/** How many pools are derived from NADs of one namespace. */
export const MAX_DERIVED_POOLS = 5;

/** The minimum cool-down is one minute. */
export function validationViewOf(given: ValidatedObjects): ValidationView {
  const { pools = [], nads = [], leases = {}, enforceAddressOwnership = false } = given;
  const cache = cacheOf(pools, POOL_INDEXES);
  const networks = new PoolDirectory({ pools: cache, networks: cacheOf(nads) });
  return {
    pools: cache,
    networks,
    leases: { ofPool: (pool) => leases[pool] ?? [] },
    rightsOf: nadRightsFrom({
      globalNamespaces: ['default'],
      capacityNamespaces: ['metered'],
      enforceAddressOwnership,
      maxDerivedPools: MAX_DERIVED_POOLS,
    }),
    minCooldownMs: 60_000,
  };
}

/** A lease of claim `vm1.data` in address space blue, unless a test says otherwise. */
export function poolLeaseOf(address: string, given: Partial<PoolLease> & { claim?: string } = {}): PoolLease {
  const { claim = 'vm1.data', ...rest } = given;
  const owner = { kind: 'IPAMClaim', namespace: 'vms', name: claim, uid: `${claim}-uid` } as const;
  return { address: parseAddress(address), addressSpace: 'blue', owner, ...rest };
}

export function reservedLease(address: string): PoolLease {
  return { address: parseAddress(address), addressSpace: 'blue' };
}

export function coolingLease(address: string): PoolLease {
  return poolLeaseOf(address, { releasedAt: 1 });
}
