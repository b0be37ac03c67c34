import { type AddressBlock, BlockRelease, type BlockWrite } from '../../api/address-block.js';
import { isBeingDeleted } from '../../api/meta.js';
import { findUnlessGone } from '../../kube/absence.js';
import type { CallOptions, Client } from '../../kube/client.js';
import { isAlreadyExists, isConflict, isNotFound } from '../../kube/errors.js';
import { ADDRESS_BLOCKS, ADDRESS_POOLS, NODES } from '../../kube/resources.js';
import { type BlockAction, writeOf } from './action.js';
import type { BlockBook } from './block-book.js';

export type BlockClient = Pick<Client, 'get' | 'create' | 'patch' | 'delete'>;

interface BlockApplyContext {
  client: BlockClient;
  blocks: Pick<BlockBook, 'wrote' | 'forget'>;
  call: CallOptions;
}

/**
 * - `done`: the write succeeded, and the cached block is current
 * - `lost`: another writer changed the block first, and the cached block is current
 * - `node-there`: the node exists although the cache does not have it
 * - `pool-there`: the pool serves although the cache does not have it, or shows it as deleted
 * - `unreadable`: an object that is not a valid block has the name
 */
export type BlockOutcome = 'done' | 'lost' | 'node-there' | 'pool-there' | 'unreadable';

/**
 * Performs one write, with the planned resourceVersion as precondition. A conflict is not an error, because the next plan sees the new state.
 * @throws {Error} if it is unknown whether the write was made
 */
export async function applyBlockAction(action: BlockAction, context: BlockApplyContext): Promise<BlockOutcome> {
  const objection = await recheck(action, context);
  if (objection !== undefined) return objection;
  const write = writeOf(action);
  try {
    const after = await perform(write, context);
    if (after !== undefined) context.blocks.wrote(after);
  } catch (error) {
    if (!isAlreadyExists(error) && !isConflict(error) && !isNotFound(error)) throw error;
    return (await readBack(write, action, context)) ? 'lost' : 'unreadable';
  }
  // a finalizer can keep the deleted block
  if (write.verb === 'delete') await readBack(write, action, context);
  if (action.kind === 'remove-finalizer') context.blocks.forget(action.block);
  return 'done';
}

/** Reads the node or pool live before a block is reclaimed or deleted without an answer of its agent. */
async function recheck(action: BlockAction, context: BlockApplyContext): Promise<BlockOutcome | undefined> {
  if (action.kind === 'reclaim' && action.isNodeGone) {
    return (await nodeExists(action.block.node, context)) ? 'node-there' : undefined;
  }
  return deletesUnreleased(action) && (await poolExists(action.block.pool, context)) ? 'pool-there' : undefined;
}

async function nodeExists(node: string, { client, call }: BlockApplyContext): Promise<boolean> {
  return (await findUnlessGone(client, NODES, { name: node }, call)) !== undefined;
}

/** Whether the block is deleted because its pool is. Caches of pools and blocks lag differently: the block may be of a newer pool of the name. */
function deletesUnreleased(
  action: BlockAction,
): action is Extract<BlockAction, { kind: 'delete' | 'remove-finalizer' }> {
  const isEnd = action.kind === 'delete' || action.kind === 'remove-finalizer';
  return isEnd && action.block.release !== BlockRelease.Released;
}

async function poolExists(pool: string, { client, call }: BlockApplyContext): Promise<boolean> {
  const found = await findUnlessGone(client, ADDRESS_POOLS, { name: pool }, call);
  return found !== undefined && !isBeingDeleted(found);
}

async function perform(write: BlockWrite, { client, call }: BlockApplyContext): Promise<AddressBlock | undefined> {
  switch (write.verb) {
    case 'create':
      return client.create(ADDRESS_BLOCKS, write.object, call);
    case 'patch-status': {
      const options = { ...call, subresource: 'status' };
      return client.patch(ADDRESS_BLOCKS, { name: write.name }, { type: 'merge', body: write.body }, options);
    }
    case 'patch':
      await client.patch(ADDRESS_BLOCKS, { name: write.name }, { type: 'merge', body: write.body }, call);
      return undefined;
    case 'delete': {
      const { name, uid, resourceVersion } = write;
      await client.delete(ADDRESS_BLOCKS, { name }, { ...call, uid, resourceVersion });
      return undefined;
    }
  }
}

/** Reads the block live and caches it. @returns false if the object is not a valid block */
async function readBack(
  write: BlockWrite,
  action: BlockAction,
  { client, blocks, call }: BlockApplyContext,
): Promise<boolean> {
  const name = write.verb === 'create' ? write.object.metadata.name : write.name;
  const found = await findUnlessGone(client, ADDRESS_BLOCKS, { name }, call);
  if (action.kind !== 'lend' && found?.metadata.uid !== action.block.metadata.uid) blocks.forget(action.block);
  if (found === undefined) return true;
  try {
    blocks.wrote(found);
    return true;
  } catch {
    return false;
  }
}
