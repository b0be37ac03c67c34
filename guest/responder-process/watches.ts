import type { AddressLease } from '../../api/address-lease.js';
import { ADDRESS_POOL_WATCH, CLAIM_WATCH, NAD_WATCH } from '../../cluster/watch-specs.js';
import { CLAIM_INDEXES } from '../../cluster/indexes.js';
import { type LeaseRecord, readLease } from '../../addressing/lease/lease.js';
import { NETWORK_INDEXES } from '../../addressing/directory/affected.js';
import type { InformerRegistry, WatchSpec } from '../../kube/informers.js';
import { ADDRESS_LEASES } from '../../kube/resources.js';
import type { ResponderConfig } from '../../process/responder-config.js';
import { GUEST_VMIS } from '../watch-specs.js';

/** Watches end so often within the time for which the table may be used: each end shows that nothing was missed until the watch began. */
const WATCHES_PER_STALENESS = 2.5;
const MIN_WATCH_SECONDS = 2;

/** Returns the informers of everything that the table depends on. */
export function responderWatches(
  informers: InformerRegistry,
  { addressSpace, maxStalenessMs }: Pick<ResponderConfig, 'addressSpace' | 'maxStalenessMs'>,
) {
  const watchSeconds = Math.max(MIN_WATCH_SECONDS, Math.floor(maxStalenessMs / 1000 / WATCHES_PER_STALENESS));
  const leases: WatchSpec<AddressLease, LeaseRecord> = {
    resource: ADDRESS_LEASES,
    // a claim keeps leases of an earlier pool of the space
    fieldSelector: `spec.addressSpace=${addressSpace}`,
    transform: readLease,
    watchSeconds,
  };
  const indexes = { ...CLAIM_INDEXES, ...NETWORK_INDEXES };
  return {
    leases: informers.get(leases),
    claims: informers.get({ ...CLAIM_WATCH, indexes, watchSeconds }),
    vmis: informers.get({ ...GUEST_VMIS, watchSeconds }),
    pools: informers.get({ ...ADDRESS_POOL_WATCH, watchSeconds }),
    networks: informers.get({ ...NAD_WATCH, watchSeconds }),
  };
}
