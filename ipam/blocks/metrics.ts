import { ReleaseReason } from '../../api/address-block.js';
import type { Metrics } from '../../process/metrics.js';
import type { BlockRecord } from '../core/block.js';
import type { BlockAction } from './action.js';
import type { BlockChange } from './block-book.js';

/** What is measured of blocks. */
export interface BlockMetrics {
  changed(change: BlockChange): void;
  did(action: BlockAction): void;
  /** Somebody was faster, or what was read was old. */
  lost(kind: BlockAction['kind']): void;
}

/** To be made once in a process: its metrics have their names for themselves. */
export function createBlockMetrics(metrics: Pick<Metrics, 'counter' | 'gauge'>): BlockMetrics {
  const blocks = metrics.gauge('ipam_blocks', 'Blocks of pools that nodes have, by how far their way back is.', [
    'state',
  ]);
  const lent = metrics.counter('ipam_blocks_lent_total', 'Blocks that were lent to nodes.');
  const marked = metrics.counter('ipam_blocks_marked_total', 'Blocks that nodes were asked for, by why.', ['reason']);
  const kept = metrics.counter('ipam_blocks_kept_total', 'Blocks that were asked for, and left to their nodes.');
  const returned = metrics.counter('ipam_blocks_returned_total', 'Blocks that are the pool’s again, by why.', [
    'reason',
  ]);
  const losses = metrics.counter('ipam_block_writes_lost_total', 'Writes of blocks that had changed meanwhile.', [
    'write',
  ]);
  blocks.set({ state: stateOf(undefined) }, 0);
  return {
    changed: ({ before, after }) => {
      if (before !== undefined) blocks.dec({ state: stateOf(before.release) });
      if (after !== undefined) blocks.inc({ state: stateOf(after.release) });
    },
    did: (action) => {
      if (action.kind === 'lend') lent.inc();
      else if (action.kind === 'mark') marked.inc({ reason: action.reason });
      else if (action.kind === 'keep') kept.inc();
      else if (action.kind === 'take-back') returned.inc({ reason: action.reason });
      else if (action.kind === 'delete' && action.block.release !== 'released') {
        returned.inc({ reason: ReleaseReason.Withdrawn });
      }
    },
    lost: (kind) => losses.inc({ write: kind }),
  };
}

function stateOf(release: BlockRecord['release']): string {
  return release ?? 'lent';
}
