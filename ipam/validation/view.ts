import type { AddressPool } from '../../api/address-pool.js';
import type { JudgedPool } from '../directory/verdict.js';
import type { NetworkAttachment } from '../../cluster/shrink.js';
import type { RightsOf } from '../../api/nad-rights.js';
import type { LeaseRecord } from '../core/lease.js';

/** What a review reads of a lease. */
export type PoolLease = Pick<LeaseRecord, 'address' | 'addressSpace' | 'owner' | 'releasedAt'>;

/** The leases of a pool, by its name. */
export interface PoolLeases {
  ofPool(pool: string): Iterable<PoolLease>;
}

/** The pools there are. */
export interface Pools {
  list(): readonly AddressPool[];
}

/** The NADs there are. */
export interface Networks {
  /** Those of a namespace whose config names the network, oldest first. */
  nadsOf(namespace: string, network: string): readonly NetworkAttachment[];
  /** The pools whose addresses are used on each layer-2 segment. */
  readonly poolsByWire: ReadonlyMap<string, ReadonlySet<JudgedPool>>;
}

/** What a review sees of the cluster. Every look is a look into memory. */
export interface ValidationView {
  readonly leases: PoolLeases;
  readonly pools: Pools;
  readonly networks: Networks;
  /** What NADs of a namespace may ask for. */
  readonly rightsOf: RightsOf;
  /** The shortest cool-down that is in force, whatever a pool says: twice what agents may answer from cache. */
  readonly leastCooldownMs: number;
}
