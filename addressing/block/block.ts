import { type AddressBlock, BlockRelease, type BlockStatusPatch, type ReleaseReason } from '../../api/address-block.js';
import { labelValue } from '../../api/ipam-claim.js';
import type { KubeObject, ObjectCreation, ObjectMeta, ObjectWrite } from '../../api/meta.js';
import { ADDRESS_BLOCK_KIND, BLOCK_FINALIZER, IPAM_API_VERSION, LEASE_NODE, LEASE_POOL } from '../../api/names.js';
import { type Cidr, formatCidr, parseCidr } from '../address/cidr.js';
import { addressLabel, addressSpacePart } from '../lease/lease-name.js';

/** The life of a block: how it is lent to a node and reclaimed. No other file builds these writes. */

/** A parsed AddressBlock, as caches keep it. */
export interface BlockRecord extends KubeObject {
  metadata: ObjectMeta & { uid: string; resourceVersion: string };
  pool: string;
  cidr: Cidr;
  node: string;
  /** `unknown`: a state that another version of Holdfast wrote. */
  release?: BlockRelease | 'unknown';
  reason?: string;
}

const RELEASE_STATES: ReadonlySet<string> = new Set(Object.values(BlockRelease));

/**
 * Parses a block.
 * @throws {TypeError} if Holdfast cannot have made the object; the message names the block and the field
 */
export function readBlock({ metadata, spec, status }: AddressBlock): BlockRecord {
  const { name, uid, resourceVersion, creationTimestamp, deletionTimestamp, finalizers } = metadata;
  if (!uid || !resourceVersion) throw new TypeError(`AddressBlock ${name} has no uid or resourceVersion`);
  const cidr = parseCidr(spec.cidr);
  const expected = blockName(spec.pool, cidr);
  // the name is the lock: with any other name the slice could be lent twice
  if (name !== expected) {
    throw new TypeError(
      `AddressBlock ${name}: the block for spec.cidr ${spec.cidr} of spec.pool ${spec.pool} must have the name ${expected}`,
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

/** Creates the block of a slice that is not lent yet. */
export function lendBlock(pool: string, cidr: Cidr, node: string): ObjectCreation<AddressBlock> {
  const metadata = {
    name: blockName(pool, cidr),
    labels: { [LEASE_POOL]: labelValue(pool), [LEASE_NODE]: labelValue(node) },
    finalizers: [BLOCK_FINALIZER],
  };
  const spec = { pool, cidr: formatCidr(cidr), node };
  return { verb: 'create', object: { apiVersion: IPAM_API_VERSION, kind: ADDRESS_BLOCK_KIND, metadata, spec } };
}

/**
 * Asks the node to release the block. Written by ipam.
 * @throws {TypeError} if a release is in progress
 */
export function markBlock(block: BlockRecord, reason: ReleaseReason): BlockStatusPatch {
  requireRelease(block, [undefined], 'be marked for release');
  return patchStatus(block, { release: BlockRelease.Marked, reason });
}

/**
 * Answers a request to release the block. Written by the agent of the block's node.
 * @param isFree no pod of the node has an address of the block, and none will get one; decided synchronously with the end of picking
 * @throws {TypeError} if the block is not marked for release
 */
export function answerBlock(block: BlockRecord, isFree: boolean): BlockStatusPatch {
  requireRelease(block, [BlockRelease.Marked], 'be answered');
  return patchStatus(block, { release: isFree ? BlockRelease.Ready : BlockRelease.Refused });
}

/**
 * Leaves the block to its node after all. Written by ipam.
 * @throws {TypeError} if no release is in progress, or the block is released already
 */
export function abortBlockRelease(block: BlockRecord): BlockStatusPatch {
  requireRelease(block, [BlockRelease.Marked, BlockRelease.Ready, BlockRelease.Refused], 'be left to its node');
  return patchStatus(block, { release: null, reason: null });
}

/**
 * Takes the block back for the pool. Written by ipam, which deletes the object next.
 * @param isNodeGone the node no longer exists and cannot answer
 * @throws {TypeError} if the node has not released the block
 */
export function reclaimBlock(block: BlockRecord, isNodeGone: boolean): BlockStatusPatch {
  requireRelease(block, isNodeGone ? [BlockRelease.Ready, BlockRelease.Marked] : [BlockRelease.Ready], 'be reclaimed');
  return patchStatus(block, { release: BlockRelease.Released });
}

/** Deletes the block. If its pool is gone, or is being deleted without leases, the node's answer is not needed. */
export function deleteBlock({ metadata: { name, uid, resourceVersion } }: BlockRecord): ObjectWrite<AddressBlock> {
  return { verb: 'delete', name, uid, resourceVersion };
}

/** Removes our finalizer: the last write to a block that is reclaimed and being deleted. */
export function removeBlockFinalizer({ metadata }: BlockRecord): ObjectWrite<AddressBlock> {
  const { name, uid, resourceVersion, finalizers = [] } = metadata;
  const left = finalizers.filter((finalizer) => finalizer !== BLOCK_FINALIZER);
  return { verb: 'patch', name, body: { metadata: { uid, resourceVersion, finalizers: left } } };
}

/** True if the block's node may pick addresses from it, as far as the block says. */
export function isUsable({ release, metadata }: BlockRecord): boolean {
  return metadata.deletionTimestamp === undefined && (release === undefined || release === BlockRelease.Refused);
}

function requireRelease(block: BlockRecord, allowed: readonly BlockRecord['release'][], action: string): void {
  const { release, metadata } = block;
  if (!allowed.includes(release)) {
    throw new TypeError(`AddressBlock ${metadata.name} is ${release ?? 'in use by its node'}: it cannot ${action}`);
  }
}

function patchStatus({ metadata: { name, uid, resourceVersion } }: BlockRecord, status: object): BlockStatusPatch {
  return { verb: 'patch-status', name, body: { metadata: { uid, resourceVersion }, status } };
}

function parseReleaseState(text: string): BlockRelease | 'unknown' {
  return RELEASE_STATES.has(text) ? (text as BlockRelease) : 'unknown';
}

/** Leaves room for a dot, a full IPv6 address (39 characters), a dash and a prefix length. */
const MAX_POOL = 253 - 1 - 39 - 4;

/** Returns the name of a slice's block, which is the lock on the slice: `blue.10-1-0-64-26`. No two slices have the same name. */
export function blockName(pool: string, { family, base, prefixLength }: Cidr): string {
  return `${addressSpacePart(pool, MAX_POOL)}.${addressLabel({ family, value: base })}-${prefixLength}`;
}
