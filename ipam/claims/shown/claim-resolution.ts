import type { IPAMClaim } from '../../../api/ipam-claim.js';
import { sameAddress } from '../../../addressing/address/address.js';
import type { PoolDirectory } from '../../../addressing/directory/directory.js';
import { type Resolution, nadNamespaceOfUser, userOfClaim } from '../../../addressing/directory/resolution.js';
import { derivedPoolName } from '../../../addressing/pool/derived-pool.js';
import type { LeaseBook } from '../../leases/lease-book.js';
import { readShownAddresses } from './claim-addresses.js';

interface ResolutionViews {
  readonly directory: Pick<PoolDirectory, 'resolve'>;
  readonly book: Pick<LeaseBook, 'ofClaim'>;
}

/**
 * Returns which pool serves a claim. Its tenant chooses the NAD, and may have written the status before a pool served the network. So only a lease of a
 * shown address, held or released, proves that the claim has its addresses from the derived pool.
 */
export function resolveClaim(claim: IPAMClaim, { directory, book }: ResolutionViews): Resolution {
  const user = userOfClaim(claim);
  const pool = derivedPoolName(nadNamespaceOfUser(user), user.network);
  const { addresses } = readShownAddresses(claim);
  const keepsPool = book
    .ofClaim(user.namespace, claim.metadata.name)
    .some((lease) => lease.pool === pool && addresses.some((shown) => sameAddress(shown, lease.address)));
  return directory.resolve(claim, keepsPool);
}
