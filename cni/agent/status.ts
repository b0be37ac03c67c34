import type { AddressPool } from '../../api/address-pool.js';
import type { PoolDirectory } from '../../addressing/directory/directory.js';
import type { Lister } from '../../kube/cache.js';

/** Returns why no pod can get an address of the network, for STATUS; undefined if a pod can, as far as is known. */
export function unavailableReason(
  network: string,
  { directory, pools }: { directory: Pick<PoolDirectory, 'poolsOf'>; pools: Pick<Lister<AddressPool>, 'get'> },
): string | undefined {
  const known = directory.poolsOf(network);
  const serving = known.filter(({ state }) => state.kind === 'served');
  if (serving.length === 0) {
    const reasons = known.flatMap(({ state }) => (state.kind === 'served' ? [] : state.message));
    return [`no AddressPool serves network ${network}`, ...reasons].join(': ');
  }
  const full = serving.map(({ name }) => fullReason(name, pools.get(name)));
  return full.every((each) => each !== undefined) ? full.join('; ') : undefined;
}

function fullReason(name: string, pool: AddressPool | undefined): string | undefined {
  const { free, leased, capacity } = pool?.status ?? {};
  return free === 0 ? `pool ${name} is full: ${leased ?? 0} of ${capacity ?? 0} leased` : undefined;
}
