import type { IPAMClaim } from '../../api/ipam-claim.js';
import { BY_WORKLOAD, CLAIM_INDEXES } from '../../cluster/indexes.js';

/** The indexes of the caches that only the IPAM has. */
export const BY_NETWORK = 'network';

/** No more than is asked for: an index of a hundred thousand values costs as much as the claims. */
export const SERVED_CLAIM_INDEXES = {
  [BY_WORKLOAD]: CLAIM_INDEXES[BY_WORKLOAD],
  [BY_NETWORK]: ({ spec }: IPAMClaim) => [spec.network],
};
