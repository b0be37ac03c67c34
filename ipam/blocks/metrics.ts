import { ReleaseReason } from '../../api/address-block.js';
import type { Metrics } from '../../process/metrics.js';
import type { BlockRecord } from '../../addressing/block/block.js';
import type { BlockAction } from './action.js';
import type { BlockChange } from './block-book.js';

export type BlockMetrics = ReturnType<typeof createBlockMetrics>;

/** To be called once in a process, because it registers the names of the metrics. */
export function createBlockMetrics(metrics: Pick<Metrics, 'counter' | 'gauge'>) {
  const blocks = metrics.gauge('ipam_blocks', 'Blocks assigned to nodes, by state of the release handshake.', [
    'state',
  ]);
  const lent = metrics.counter('ipam_blocks_lent_total', 'Blocks that were assigned to nodes.');
  const marked = metrics.counter('ipam_blocks_marked_total', 'Blocks that were marked for release, by reason.', [
    'reason',
  ]);
  const kept = metrics.counter(
    'ipam_blocks_kept_total',
    'Blocks whose release was aborted, so that their nodes keep them.',
  );
  const returned = metrics.counter(
    'ipam_blocks_returned_total',
    'Blocks that were returned to their pools, by reason.',
    ['reason'],
  );
  const losses = metrics.counter(
    'ipam_block_writes_lost_total',
    'Writes of blocks that failed because of a conflict or a recheck, by action.',
    ['write'],
  );
  blocks.set({ state: stateOf(undefined) }, 0);
  return {
    changed: ({ before, after }: BlockChange) => {
      if (before !== undefined) blocks.dec({ state: stateOf(before.release) });
      if (after !== undefined) blocks.inc({ state: stateOf(after.release) });
    },
    written: (action: BlockAction) => {
      if (action.kind === 'lend') lent.inc();
      else if (action.kind === 'mark') marked.inc({ reason: action.reason });
      else if (action.kind === 'abort') kept.inc();
      else if (action.kind === 'reclaim') returned.inc({ reason: action.reason });
      else if (action.kind === 'delete' && action.block.release !== 'released') {
        returned.inc({ reason: ReleaseReason.Withdrawn });
      }
    },
    /** A write had a conflict, or a recheck prevented it. */
    conflicted: (kind: BlockAction['kind']) => losses.inc({ write: kind }),
  };
}

function stateOf(release: BlockRecord['release']): string {
  return release ?? 'lent';
}
