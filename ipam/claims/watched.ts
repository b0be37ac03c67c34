import type { IPAMClaim } from '../../api/ipam-claim.js';
import type { Watched } from '../../kube/informers.js';
import { IPAM_CLAIMS } from '../../kube/resources.js';
import { SERVED_CLAIM_INDEXES } from './indexes.js';
import { shrinkClaim } from './shrink.js';

/** Claims with their whole status. Optional as elsewhere: another's CRD, which may come later. */
export const SERVED_CLAIMS: Watched<IPAMClaim> = {
  resource: IPAM_CLAIMS,
  shrink: shrinkClaim,
  indexes: SERVED_CLAIM_INDEXES,
  optional: true,
};
