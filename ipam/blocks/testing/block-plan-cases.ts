import { expect } from 'chai';
import { type AddressBlock, BlockRelease, ReleaseReason } from '../../../api/address-block.js';
import { type BlockAction, writeOf } from '../action.js';
import type { BlockState, ObservedBlock, ObservedNode, ObservedPool } from '../observed-pool.js';
import { type BlockPlan, planBlocks } from '../plan.js';
import { type BlockRecord, lendBlock, readBlock } from '../../../addressing/block/block.js';
import { formatCidr, parseCidr } from '../../../addressing/address/cidr.js';

/** Inputs of the plan of blocks in short form. */

export const DELAY = 180_000;
export const NOW = 1_000_000_000;
export const LONG_AGO = NOW - DELAY;
const policy = { minFree: 8, maxFree: 72, excessDelayMs: DELAY };

export const { Marked, Ready, Refused, Released } = BlockRelease;
export const { Excess, Pressure, NodeGone, Withdrawn } = ReleaseReason;
export const nodeWith = (used: number): ObservedNode => ({ exists: true, isEligible: true, leases: { 4: used, 6: 0 } });
export const unfitNode: ObservedNode = { exists: true, isEligible: false, leases: { 4: 1, 6: 0 } };
export const missingNode: ObservedNode = { exists: false, isEligible: false, leases: { 4: 0, 6: 0 } };

export interface ObservedBlockOptions extends Partial<Omit<ObservedBlock, 'record'>> {
  node?: string;
  status?: AddressBlock['status'];
  deleting?: boolean;
  finalizers?: string[];
}

/** Block `10.1.0.<64 * index>/26` of node n1, without leases. */
export function block(index: number, given: ObservedBlockOptions = {}): ObservedBlock {
  const { node = 'n1', status: _status, deleting: _deleting, finalizers: _finalizers, ...rest } = given;
  return { record: recordOf(index, node, given), used: 0, free: 64, size: 64, isSlice: true, ...rest };
}

function recordOf(
  index: number,
  node: string,
  { status, deleting, finalizers }: Pick<ObservedBlockOptions, 'status' | 'deleting' | 'finalizers'>,
): BlockRecord {
  const made = lendBlock('blue', parseCidr(`10.1.0.${64 * index}/26`), node);
  const metadata = {
    ...made.object.metadata,
    uid: `u${index}`,
    resourceVersion: '7',
    ...(finalizers && { finalizers }),
  };
  const deletion = deleting === true ? { deletionTimestamp: '2026-01-01T00:00:00Z' } : {};
  return readBlock({ ...made.object, metadata: { ...metadata, ...deletion }, ...(status && { status }) });
}

export interface BlockPlanInputs extends Partial<Omit<ObservedPool, 'nodes' | 'unlent'>> {
  nodes?: Record<string, ObservedNode>;
  /** Free addresses of slices 3, 2, 1 …, as many as there are. */
  unlent?: number[];
  /** Free addresses of the slices 2001:db8::/122, 2001:db8::40/122 and so on. */
  unlent6?: number[];
  state?: Record<string, BlockState>;
  now?: number;
}

export function planGiven({
  nodes = { n1: nodeWith(1) },
  unlent = [],
  unlent6 = [],
  state = {},
  now = NOW,
  ...rest
}: BlockPlanInputs): BlockPlan {
  const slices = unlent.map((free, index) => ({ cidr: parseCidr(`10.1.0.${64 * (3 - index)}/26`), free }));
  const slices6 = unlent6.map((free, index) => ({
    cidr: parseCidr(`2001:db8::${(64 * index).toString(16)}/122`.replace('::0/', '::/')),
    free,
  }));
  const pool: ObservedPool = {
    name: 'blue',
    phase: 'serving',
    blocks: [],
    claimShortageAt: {},
    ...rest,
    nodes: new Map(Object.entries(nodes)),
    unlent: { 4: slices, 6: slices6 },
  };
  return planBlocks(pool, new Map(Object.entries(state)), { policy, now });
}

/** `mark 0 ExcessAddresses`, `lend 3 n1`. */
function summaryOf(action: BlockAction): string {
  if (action.kind === 'lend') return `lend ${indexOf(formatCidr(action.slice))} ${action.node}`;
  const what = `${action.kind} ${indexOf(formatCidr(action.block.cidr))}`;
  if (action.kind === 'mark') return `${what} ${action.reason}`;
  return action.kind === 'reclaim' && action.isNodeGone ? `${what} unanswered` : what;
}

function indexOf(cidr: string): string {
  const offset = /^10\.1\.0\.(\d+)/.exec(cidr)?.[1];
  return offset === undefined ? cidr : String(Number(offset) / 64);
}

export const since = (at: number, reason: ReleaseReason = Excess): BlockState => ({
  reclaimable: { since: at, reason },
});
export const withRelease = (release: string, reason: ReleaseReason = Excess) => ({ status: { release, reason } });

/** A test of a plan: its input, the expected actions, and the delay until the next sync. */
export interface BlockPlanCase {
  name: string;
  given: BlockPlanInputs;
  expect: string[];
  requeueInMs?: number;
}

export function itPlansBlocks(lines: readonly BlockPlanCase[]): void {
  for (const { name, given, expect: does, requeueInMs } of lines) {
    it(name, () => {
      const { actions, requeueAt } = planGiven(given);
      expect(actions.map(summaryOf)).to.deep.equal(does);
      expect(requeueAt).to.equal(requeueInMs === undefined ? undefined : NOW + requeueInMs);
      // the release state of the block allows the write
      for (const action of actions) expect(writeOf(action)).to.have.property('verb');
    });
  }
}
