import type { AddressPool } from '../../api/address-pool.js';
import type { EvaluatedPool } from '../directory/pool-state.js';
import type { ParsedNad } from '../../cluster/transforms.js';
import type { NadRightsLookup } from '../../api/nad-rights.js';
import type { LeaseRecord } from '../core/lease.js';

/** What a review reads of a lease. */
export type PoolLease = Pick<LeaseRecord, 'address' | 'addressSpace' | 'owner' | 'releasedAt'>;

/** The leases of a pool, by its name. */
export interface PoolLeases {
  ofPool(pool: string): Iterable<PoolLease>;
}

/** The pools there are. */
export interface PoolLister {
  list(): readonly AddressPool[];
}

/** The NADs there are. */
export interface NadLister {
  /** Those of a namespace whose config names the network, oldest first. */
  nadsOf(namespace: string, network: string): readonly ParsedNad[];
  /** The pools whose addresses are used on each layer-2 segment. */
  readonly poolsByWire: ReadonlyMap<string, ReadonlySet<EvaluatedPool>>;
}

/** What a review sees of the cluster. Every look is a look into memory. */
export interface ValidationView {
  readonly leases: PoolLeases;
  readonly pools: PoolLister;
  readonly networks: NadLister;
  /** What NADs of a namespace may ask for. */
  readonly rightsOf: NadRightsLookup;
  /** The shortest cool-down that is in force, whatever a pool says: twice what agents may answer from cache. */
  readonly minCooldownMs: number;
}
