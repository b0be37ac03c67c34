import { type AddressBlock, BlockRelease, type BlockWrite, type ReleaseReason } from '../../api/address-block.js';
import { labelValue } from '../../api/ipam-claim.js';
import type { KubeObject, ObjectMeta } from '../../api/meta.js';
import { ADDRESS_BLOCK_KIND, BLOCK_FINALIZER, IPAM_API_VERSION, LEASE_NODE, LEASE_POOL } from '../../api/names.js';
import { blockName } from './block-name.js';
import { type Cidr, formatCidr, parseCidr } from './cidr.js';

/** The life of a block: the only place that knows what it means to lend one and to have it back. */

/** An AddressBlock as it is kept in memory: what it says, read. */
export interface BlockRecord extends KubeObject {
  metadata: ObjectMeta & { uid: string; resourceVersion: string };
  pool: string;
  cidr: Cidr;
  node: string;
  /** `unknown`: a word of another version. */
  release?: BlockRelease | 'unknown';
  reason?: string;
}

const RELEASE_STATES: ReadonlySet<string> = new Set(Object.values(BlockRelease));

/** @throws {TypeError} where the object is no block that Holdfast could have made; the message names the block and the field */
export function readBlock({ metadata, spec, status }: AddressBlock): BlockRecord {
  const { name, uid, resourceVersion, creationTimestamp, deletionTimestamp, finalizers } = metadata;
  if (!uid || !resourceVersion) throw new TypeError(`AddressBlock ${name} has no uid or resourceVersion`);
  const cidr = parseCidr(spec.cidr);
  const expected = blockName(spec.pool, cidr);
  // the name is the lock: under any other name the slice could be lent twice
  if (name !== expected) {
    throw new TypeError(
      `AddressBlock ${name}: spec.cidr ${spec.cidr} of spec.pool ${spec.pool} is lent under the name ${expected} only`,
    );
  }
  return {
    metadata: {
      name,
      uid,
      resourceVersion,
      ...(creationTimestamp !== undefined && { creationTimestamp }),
      ...(deletionTimestamp !== undefined && { deletionTimestamp }),
      ...(finalizers !== undefined && { finalizers }),
    },
    pool: spec.pool,
    cidr,
    node: spec.node,
    ...(status?.release !== undefined && { release: parseReleaseState(status.release) }),
    ...(status?.reason !== undefined && { reason: status.reason }),
  };
}

/** For a slice that no block has. */
export function lendBlock(pool: string, cidr: Cidr, node: string): BlockWrite {
  const metadata = {
    name: blockName(pool, cidr),
    labels: { [LEASE_POOL]: labelValue(pool), [LEASE_NODE]: labelValue(node) },
    finalizers: [BLOCK_FINALIZER],
  };
  const spec = { pool, cidr: formatCidr(cidr), node };
  return { verb: 'create', block: { apiVersion: IPAM_API_VERSION, kind: ADDRESS_BLOCK_KIND, metadata, spec } };
}

/**
 * By ipam: the node is asked for the block.
 * @throws {TypeError} where it has been asked already
 */
export function markBlock(block: BlockRecord, reason: ReleaseReason): BlockWrite {
  requireRelease(block, [undefined], 'be asked for');
  return patchStatus(block, { release: BlockRelease.Marked, reason });
}

/**
 * By the agent of the block's node.
 * @param isFree no pod of the node has an address of it, and none will get one: decided in the same turn in which picking from it ended
 * @throws {TypeError} where the block is not asked for
 */
export function answerBlock(block: BlockRecord, isFree: boolean): BlockWrite {
  requireRelease(block, [BlockRelease.Marked], 'be answered for');
  return patchStatus(block, { release: isFree ? BlockRelease.Ready : BlockRelease.Refused });
}

/**
 * By ipam: the block stays its node's.
 * @throws {TypeError} where it is not asked for, or is the pool's again already
 */
export function abortBlockRelease(block: BlockRecord): BlockWrite {
  requireRelease(block, [BlockRelease.Marked, BlockRelease.Ready, BlockRelease.Refused], 'be left to its node');
  return patchStatus(block, { release: null, reason: null });
}

/**
 * By ipam: the block is the pool's again. Its object is deleted next.
 * @param isNodeGone nobody is there to answer for it
 * @throws {TypeError} where its node has not given it back
 */
export function reclaimBlock(block: BlockRecord, isNodeGone: boolean): BlockWrite {
  requireRelease(block, isNodeGone ? [BlockRelease.Ready, BlockRelease.Marked] : [BlockRelease.Ready], 'be taken back');
  return patchStatus(block, { release: BlockRelease.Released });
}

/** Where its pool is no more, or ends without leases, nobody picks from it, whatever its node has said. */
export function deleteBlock({ metadata: { name, uid, resourceVersion } }: BlockRecord): BlockWrite {
  return { verb: 'delete', name, uid, resourceVersion };
}

/** The last write: of a block that is being deleted, and is its pool's again. */
export function removeBlockFinalizer({
  metadata: { name, uid, resourceVersion, finalizers },
}: BlockRecord): BlockWrite {
  const left = (finalizers ?? []).filter((finalizer) => finalizer !== BLOCK_FINALIZER);
  return { verb: 'patch', name, body: { metadata: { uid, resourceVersion, finalizers: left } } };
}

/** The block's node may pick addresses from it, as far as the block itself says. */
export function isUsable({ release, metadata }: BlockRecord): boolean {
  return metadata.deletionTimestamp === undefined && (release === undefined || release === BlockRelease.Refused);
}

function requireRelease(
  { release, metadata }: BlockRecord,
  allowed: readonly BlockRecord['release'][],
  action: string,
): void {
  if (!allowed.includes(release)) {
    throw new TypeError(`AddressBlock ${metadata.name} is ${release ?? 'its node’s'}: it cannot ${action}`);
  }
}

function patchStatus({ metadata: { name, uid, resourceVersion } }: BlockRecord, status: object): BlockWrite {
  return { verb: 'patch-status', name, body: { metadata: { uid, resourceVersion }, status } };
}

function parseReleaseState(text: string): BlockRelease | 'unknown' {
  return RELEASE_STATES.has(text) ? (text as BlockRelease) : 'unknown';
}
