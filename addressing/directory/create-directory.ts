import type { AddressBlock } from '../../api/address-block.js';
import { type Clock, pacedBy } from '../../kube/clock.js';
import type { WatchSpec } from '../../kube/informers/informers.js';
import { ADDRESS_BLOCKS } from '../../kube/resources.js';
import { type BlockRecord, readBlock } from '../block/block.js';
import { type PoolChanges, PoolDirectory, type PoolListers } from './directory.js';

/** Caches of pools and NADs that tell of their changes. Informers are such caches. */
interface PoolInformers {
  pools: PoolChanges['pools'] & { readonly cache: PoolListers['pools'] };
  networks: PoolChanges['networks'] & { readonly cache: PoolListers['networks']; readonly isServed: boolean };
}

/** Creates a directory that follows its caches. Handlers that are registered later see an up-to-date directory. */
export function createPoolDirectory(
  { pools, networks }: PoolInformers,
  clock: Pick<Clock, 'now' | 'setTimer'>,
): PoolDirectory {
  const areNetworksServed = () => networks.isServed;
  const listers = { pools: pools.cache, networks: networks.cache, areNetworksServed };
  const directory = new PoolDirectory(listers, pacedBy(clock));
  directory.follow({ pools, networks });
  return directory;
}

/** Watches blocks. Optional, because blocks are hints, and claims are served without them. */
export const ADDRESS_BLOCK_WATCH: WatchSpec<AddressBlock, BlockRecord> = {
  resource: ADDRESS_BLOCKS,
  transform: readBlock,
  optional: true,
};
