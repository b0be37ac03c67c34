import type { IPAMClaim } from '../../api/ipam-claim.js';
import type { WatchSpec } from '../../kube/informers.js';
import { IPAM_CLAIMS } from '../../kube/resources.js';
import { SERVED_CLAIM_INDEXES } from './indexes.js';
import { transformServedClaim } from './claim-transform.js';

/** Watches claims with their whole status. Optional, because another project owns the CRD, which may be installed later. */
export const SERVED_CLAIM_WATCH: WatchSpec<IPAMClaim> = {
  resource: IPAM_CLAIMS,
  transform: transformServedClaim,
  indexes: SERVED_CLAIM_INDEXES,
  optional: true,
};
