import type { AddressPool } from '../../api/address-pool.js';
import type { KubeObject } from '../../api/meta.js';
import type { ObjectChange } from '../../kube/informers/informer.js';
import { affectedPools } from '../../addressing/directory/affected.js';
import type { NetworkChanges, PoolDirectory } from '../../addressing/directory/directory.js';
import { stateOf } from '../../addressing/lease/lease.js';
import type { LeaseChange } from '../leases/lease-book.js';
import type { ChangeSource } from '../pools/triggers.js';
import type { BlockBook, BlockChange } from './block-book.js';
import type { ClaimShortages, NodeLeaseCounts } from './node-demand.js';
import type { PoolSlices } from './slice-occupancy.js';

/** Maps changes to the pools whose blocks they affect. */

interface BlockTriggerSources {
  pools: ChangeSource<ObjectChange<AddressPool>>;
  nodes: ChangeSource<ObjectChange<KubeObject>>;
  book: ChangeSource<LeaseChange>;
  blocks: ChangeSource<Pick<BlockChange, 'pool'>> & Pick<BlockBook, 'poolsOf' | 'countOf'>;
  directory: ChangeSource<NetworkChanges> & Pick<PoolDirectory, 'poolsOf' | 'poolsContaining'>;
  leaseCounts: Pick<NodeLeaseCounts, 'poolsOf'>;
  shortages: Pick<ClaimShortages, 'onShortage' | 'forget'>;
  slices: Pick<PoolSlices, 'forget'>;
}

/** Calls `add` with the names of pools whose blocks need a sync. `add` does nothing while another process is the leader. */
export function watchBlockSources(sources: BlockTriggerSources, add: (pools: readonly string[]) => void): void {
  const { pools, nodes, book, blocks, directory, shortages, slices } = sources;
  directory.onChange((changes) => add(affectedPools(changes, directory)));
  pools.onChange(({ type, object: { metadata } }) => {
    if (type === 'removed') {
      slices.forget(metadata.name);
      shortages.forget(metadata.name);
    }
    // blocks may be all that delays the deletion
    if (type === 'removed' || metadata.deletionTimestamp !== undefined) add([metadata.name]);
  });
  nodes.onChange((change) => {
    if (isRelevant(change)) add(poolsOfNode(change.object.metadata.name, sources));
  });
  book.onChange((change) => add(poolsOfLease(change, sources)));
  blocks.onChange(({ pool }) => add([pool]));
  shortages.onShortage((pool) => add([pool]));
}

/** The pool of a lease that was allocated, released or moved. If the lease was created or deleted, also other pools with blocks at its address. */
function poolsOfLease({ before, after }: LeaseChange, { directory, blocks }: BlockTriggerSources): readonly string[] {
  const lease = after ?? before;
  if (before === undefined || after === undefined) {
    const lending = directory
      .poolsContaining(lease.addressSpace, lease.address)
      .filter((pool) => blocks.countOf(pool) > 0);
    return [...new Set([lease.pool, ...lending])];
  }
  const isSame = before.node === after.node && stateOf(before) === stateOf(after);
  return isSame ? [] : [lease.pool];
}

/** The pools of the node's blocks and leases. */
function poolsOfNode(node: string, { blocks, leaseCounts }: BlockTriggerSources): string[] {
  return [...new Set([...leaseCounts.poolsOf(node), ...blocks.poolsOf(node)])];
}

/** Whether a change of a node affects its blocks: heartbeats do not. */
function isRelevant({ type, object, before }: ObjectChange<KubeObject>): boolean {
  return type !== 'changed' || before === undefined || relevantFields(object) !== relevantFields(before);
}

function relevantFields({ metadata: { uid, deletionTimestamp, labels } }: KubeObject): string {
  return JSON.stringify([uid, deletionTimestamp, labels]);
}
