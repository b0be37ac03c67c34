import type { AddressPool } from '../../api/address-pool.js';
import type { BY_NAD_NAMESPACE } from '../../cluster/watch-specs.js';
import type { EvaluatedPool } from '../../addressing/directory/pool-state.js';
import type { ParsedNad } from '../../cluster/transforms.js';
import type { NadRightsLookup } from '../../api/nad-rights.js';
import type { SpacePool } from '../../addressing/pool/address-space-rights.js';
import type { LeaseRecord } from '../../addressing/lease/lease.js';
import type { Pool } from '../../addressing/pool/pool.js';

/** The part of a lease that a review reads. */
export type PoolLease = Pick<LeaseRecord, 'address' | 'addressSpace' | 'owner' | 'releasedAt' | 'quarantine'>;

/** The leases of a pool, by its name. */
export interface PoolLeases {
  ofPool(pool: string): Iterable<PoolLease>;
}

/** All pools. */
export interface PoolLister {
  list(): readonly AddressPool[];
  byIndex(index: typeof BY_NAD_NAMESPACE, namespace: string): readonly AddressPool[];
}

/** All NADs. */
export interface NadLister {
  /** A pool, compiled; undefined if it is invalid or unknown. */
  pool(name: string): Pool | undefined;
  /** The valid pools of an address space. */
  poolsIn(addressSpace: string): readonly SpacePool[];
  /** NADs of a namespace whose config names the network, oldest first. */
  nadsOf(namespace: string, network: string): readonly ParsedNad[];
  /** The pools whose addresses are used on each layer-2 segment. */
  readonly poolsBySegment: ReadonlyMap<string, ReadonlySet<EvaluatedPool>>;
}

/** What a review sees of the cluster. Everything is read from memory. */
export interface ValidationView {
  readonly leases: PoolLeases;
  readonly pools: PoolLister;
  readonly networks: NadLister;
  /** What NADs of a namespace may request. */
  readonly rightsOf: NadRightsLookup;
  /** The minimum cool-down, whatever a pool says: twice the time for which agents may answer from caches. */
  readonly minCooldownMs: number;
}
