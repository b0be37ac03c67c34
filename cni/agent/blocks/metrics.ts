import type { Metrics } from '../../../process/metrics.js';

/** How many blocks a node has: to pick from, asked for or given back, and with words that nobody here knows. */
export interface BlockCounts {
  readonly usable: number;
  readonly marked: number;
  readonly other: number;
}

/** What is measured of the blocks of a node. */
export interface NodeBlockMetrics {
  lent(counts: BlockCounts): void;
  /** @param answer as it stands on the block */
  answered(answer: string, outcome: 'done' | 'lost' | 'unknown'): void;
}

/** To be made once in a process: its metrics have their names for themselves. */
export function createNodeBlockMetrics(metrics: Pick<Metrics, 'counter' | 'gauge'>): NodeBlockMetrics {
  const blocks = metrics.gauge('agent_blocks', 'Blocks of pools that this node is lent, by state.', ['state']);
  const answers = metrics.counter(
    'agent_block_answers_total',
    'Answers to the question whether a block can go back, by answer and outcome.',
    ['answer', 'outcome'],
  );
  return {
    lent: (counts) => {
      for (const [state, count] of Object.entries(counts)) blocks.set({ state }, count as number);
    },
    answered: (answer, outcome) => answers.inc({ answer, outcome }),
  };
}
