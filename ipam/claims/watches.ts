import type { IPAMClaim } from '../../api/ipam-claim.js';
import type { WatchSpec } from '../../kube/informers.js';
import { IPAM_CLAIMS } from '../../kube/resources.js';
import { transformServedClaim } from './claim-transform.js';
import { BY_WORKLOAD, CLAIM_INDEXES } from '../../cluster/indexes.js';
import { NETWORK_INDEXES } from '../../addressing/directory/affected.js';

/** Only indexes that are queried: an index with a hundred thousand values costs as much memory as the claims. */
export const SERVED_CLAIM_INDEXES = { [BY_WORKLOAD]: CLAIM_INDEXES[BY_WORKLOAD], ...NETWORK_INDEXES };

/** Watches claims with their whole status. Optional, because another project owns the CRD, which may be installed later. */
export const SERVED_CLAIM_WATCH: WatchSpec<IPAMClaim> = {
  resource: IPAM_CLAIMS,
  transform: transformServedClaim,
  indexes: SERVED_CLAIM_INDEXES,
  optional: true,
};
