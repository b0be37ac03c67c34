import type { AddressPool } from '../../../api/address-pool.js';
import { parseAddress } from '../../core/address.js';
import { rightsBy } from '../../../api/nad-rights.js';
import { PoolDirectory } from '../../directory/directory.js';
import type { PoolLease, ValidationView } from '../view.js';
import type { NetworkAttachment } from '../../../cluster/shrink.js';
import { cacheOf } from '../../../test/pool-objects.js';

/** What a review of pools and NADs sees, for tests. */
export interface Seen {
  pools?: readonly AddressPool[];
  nads?: readonly NetworkAttachment[];
  /** By pool. */
  leases?: Readonly<Record<string, readonly PoolLease[]>>;
}

/** Cool-downs are at least a minute long. */
export function viewOf({ pools = [], nads = [], leases = {} }: Seen): ValidationView {
  const cache = cacheOf(pools);
  const networks = new PoolDirectory({ pools: cache, networks: cacheOf(nads) });
  return {
    pools: cache,
    networks,
    leases: { ofPool: (pool) => leases[pool] ?? [] },
    rightsOf: rightsBy({ globalNamespaces: ['default'], capacityNamespaces: ['metered'] }),
    leastCooldownMs: 60_000,
  };
}

/** Of claim `vm1.data`, unless it is said otherwise, in address space blue. */
export function leaseOf(address: string, given: Partial<PoolLease> & { claim?: string } = {}): PoolLease {
  const { claim = 'vm1.data', ...rest } = given;
  const owner = { kind: 'IPAMClaim', namespace: 'vms', name: claim, uid: `${claim}-uid` } as const;
  return { address: parseAddress(address), addressSpace: 'blue', owner, ...rest };
}

export function reservedLease(address: string): PoolLease {
  return { address: parseAddress(address), addressSpace: 'blue' };
}

export function coolingLease(address: string): PoolLease {
  return leaseOf(address, { releasedAt: 1 });
}
