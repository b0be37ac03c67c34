import type { IPAMClaim } from '../../api/ipam-claim.js';
import { BY_WORKLOAD, CLAIM_INDEXES } from '../../cluster/indexes.js';

/** Indexes of caches that only the IPAM has. */
export const BY_NETWORK = 'network';

/** Only indexes that are queried: an index with a hundred thousand values costs as much memory as the claims. */
export const SERVED_CLAIM_INDEXES = {
  [BY_WORKLOAD]: CLAIM_INDEXES[BY_WORKLOAD],
  [BY_NETWORK]: ({ spec }: IPAMClaim) => [spec.network],
};
