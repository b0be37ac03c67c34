import type { Metrics } from '../../../process/metrics.js';

/** Number of the node's blocks: usable, marked for release or released, and in an unknown state. */
export interface BlockCounts {
  readonly usable: number;
  readonly marked: number;
  readonly other: number;
}

/** Metrics of the blocks of a node. */
export interface NodeBlockMetrics {
  lent(counts: BlockCounts): void;
  /** Counts an answer. @param answer the value written to the block */
  answered(answer: string, outcome: 'done' | 'lost' | 'unknown'): void;
}

/** Creates the metrics. Call it once in a process, because metric names are unique. */
export function createNodeBlockMetrics(metrics: Pick<Metrics, 'counter' | 'gauge'>): NodeBlockMetrics {
  const blocks = metrics.gauge('agent_blocks', 'Number of blocks that are assigned to this node, by state.', ['state']);
  const answers = metrics.counter(
    'agent_block_answers_total',
    'Answers to requests to release a block, by answer and outcome.',
    ['answer', 'outcome'],
  );
  return {
    lent: (counts) => {
      for (const [state, count] of Object.entries(counts)) blocks.set({ state }, count as number);
    },
    answered: (answer, outcome) => answers.inc({ answer, outcome }),
  };
}
