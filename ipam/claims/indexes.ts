import { BY_WORKLOAD, CLAIM_INDEXES } from '../../cluster/indexes.js';
import { NETWORK_INDEXES } from '../../addressing/directory/affected.js';

/** Only indexes that are queried: an index with a hundred thousand values costs as much memory as the claims. */
export const SERVED_CLAIM_INDEXES = { [BY_WORKLOAD]: CLAIM_INDEXES[BY_WORKLOAD], ...NETWORK_INDEXES };
