import type { IPAMClaim } from '../api/ipam-claim.js';
import { CLAIM_INDEXES } from '../process/indexes.js';

/** The indexes of the caches that only the IPAM has. */
export const BY_NETWORK = 'network';

export const SERVED_CLAIM_INDEXES = {
  ...CLAIM_INDEXES,
  [BY_NETWORK]: ({ spec }: IPAMClaim) => [spec.network],
};
