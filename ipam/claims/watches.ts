import type { IPAMClaim } from '../../api/ipam-claim.js';
import type { WatchSpec } from '../../kube/informers.js';
import { IPAM_CLAIMS } from '../../kube/resources.js';
import { SERVED_CLAIM_INDEXES } from './indexes.js';
import { transformServedClaim } from './claim-transform.js';

/** Claims with their whole status. Optional as elsewhere: another's CRD, which may come later. */
export const SERVED_CLAIM_WATCH: WatchSpec<IPAMClaim> = {
  resource: IPAM_CLAIMS,
  shrink: transformServedClaim,
  indexes: SERVED_CLAIM_INDEXES,
  optional: true,
};
