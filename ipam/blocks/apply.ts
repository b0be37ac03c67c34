import { type AddressBlock, BlockRelease, type BlockWrite } from '../../api/address-block.js';
import { isBeingDeleted } from '../../api/meta.js';
import { findUnlessGone } from '../../kube/absence.js';
import type { CallOptions, Client } from '../../kube/client.js';
import { isAlreadyExists, isConflict, isNotFound } from '../../kube/errors.js';
import { ADDRESS_BLOCKS, ADDRESS_POOLS, NODES } from '../../kube/resources.js';
import { type BlockAction, writeOf } from './action.js';
import type { BlockBook } from './block-book.js';

export type BlockClient = Pick<Client, 'get' | 'create' | 'patch' | 'delete'>;

export interface BlockApplyContext {
  client: BlockClient;
  blocks: Pick<BlockBook, 'wrote' | 'forget'>;
  call: CallOptions;
}

/**
 * - `done`: what is there now is known
 * - `lost`: somebody was faster, and what is there now is known
 * - `node-there`: the node that the cache does not know of is there
 * - `pool-there`: the pool that the cache does not know of, or not like this, is there
 * - `unreadable`: what has the name is no block that Holdfast could have made
 */
export type BlockOutcome = 'done' | 'lost' | 'node-there' | 'pool-there' | 'unreadable';

/**
 * Performs one write. Its precondition is the block as it was judged, and so is its loss no failure: the next plan is made of what is there.
 * @throws {Error} where it cannot be known whether anything was written
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
  // a finalizer may hold what was deleted
  if (write.verb === 'delete') await readBack(write, action, context);
  if (action.kind === 'let-go') context.blocks.forget(action.block);
  return 'done';
}

/** What is taken without an answer is taken on the API server's own word. */
async function recheck(action: BlockAction, context: BlockApplyContext): Promise<BlockOutcome | undefined> {
  if (action.kind === 'take-back' && action.isNodeGone) {
    return (await nodeExists(action.block.node, context)) ? 'node-there' : undefined;
  }
  return deletesUnreleased(action) && (await poolExists(action.block.pool, context)) ? 'pool-there' : undefined;
}

async function nodeExists(node: string, { client, call }: BlockApplyContext): Promise<boolean> {
  return (await findUnlessGone(client, NODES, { name: node }, call)) !== undefined;
}

/** Its node has not given it back: caches of pools and of blocks lag behind by different times, so that the block may be of a later pool of the name. */
function deletesUnreleased(action: BlockAction): action is Extract<BlockAction, { kind: 'delete' | 'let-go' }> {
  const isEnd = action.kind === 'delete' || action.kind === 'let-go';
  return isEnd && action.block.release !== BlockRelease.Released;
}

async function poolExists(pool: string, { client, call }: BlockApplyContext): Promise<boolean> {
  const found = await findUnlessGone(client, ADDRESS_POOLS, { name: pool }, call);
  return found !== undefined && !isBeingDeleted(found);
}

async function perform(write: BlockWrite, { client, call }: BlockApplyContext): Promise<AddressBlock | undefined> {
  switch (write.verb) {
    case 'create':
      return client.create(ADDRESS_BLOCKS, write.block, call);
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

/** Looks at what has the name now. @returns false where it cannot be read */
async function readBack(
  write: BlockWrite,
  action: BlockAction,
  { client, blocks, call }: BlockApplyContext,
): Promise<boolean> {
  const name = write.verb === 'create' ? write.block.metadata.name : write.name;
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
