import type { AddressPool } from '../../api/address-pool.js';
import { usersWithoutConsent } from '../../addressing/pool/address-space-rights.js';
import type { PoolDirectory } from '../../addressing/directory/directory.js';
import { MAX_NAMED } from './named-leases.js';

/** Names the derived pools that have addresses of a pool that does not serve their namespaces. Undefined if there are none. */
export function describeUsersWithoutConsent(
  { metadata: { name } }: AddressPool,
  directory: Pick<PoolDirectory, 'pool' | 'poolsIn'>,
): string | undefined {
  const addressSpace = directory.pool(name)?.addressSpace;
  const others = addressSpace === undefined ? [] : directory.poolsIn(addressSpace);
  const owner = others.find(({ pool }) => pool.name === name);
  const users = owner === undefined ? [] : usersWithoutConsent(owner, others);
  if (users.length === 0) return undefined;
  const named = users.slice(0, MAX_NAMED).map((user) => `${user.pool.name} (namespace ${user.nadNamespace ?? ''})`);
  const more = users.length > MAX_NAMED ? ` and ${users.length - MAX_NAMED} more` : '';
  return (
    `This pool does not serve the namespaces of derived AddressPools that have some of its addresses: ${named.join(', ')}${more}. ` +
    'Add the namespaces to the pool, change the NADs of those pools, or set --enforce-address-ownership of ipam'
  );
}
