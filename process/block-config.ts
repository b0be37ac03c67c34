import { type Settings, duration, wholeNumber } from './setting.js';

/** How many addresses nodes get in blocks. */
export interface BlockConfig {
  /** A node with fewer free addresses in its blocks of a pool gets another block. */
  readonly blockMinFree: number;
  /** A node with more free addresses must release an unused block. */
  readonly blockMaxFree: number;
  /** How long a node must have too many free addresses before that. */
  readonly excessReleaseDelayMs: number;
}

const DAY_MS = 24 * 3_600_000;

export const BLOCK_SETTINGS: Settings<BlockConfig> = {
  blockMinFree: {
    flag: 'block-min-free',
    placeholder: 'number',
    description: 'a node with fewer free addresses in its blocks of a pool gets another block',
    defaultValue: 8,
    parse: wholeNumber(1, 65_536),
  },
  blockMaxFree: {
    flag: 'block-max-free',
    placeholder: 'number',
    description: 'a node with more free addresses in its blocks of a pool must release an unused block',
    defaultValue: 72, // a block of the default size and the default of block-min-free
    parse: wholeNumber(1, 1_000_000),
  },
  excessReleaseDelayMs: {
    flag: 'excess-release-delay',
    placeholder: 'duration',
    description: 'how long a node must have more free addresses than block-max-free before a block is taken back',
    defaultValue: 180_000,
    defaultText: '180s',
    parse: duration(100, DAY_MS),
  },
};

/** @returns why the values cannot be combined; undefined if they can */
export function findBlockConfigProblem({ blockMinFree, blockMaxFree }: BlockConfig): string | undefined {
  if (blockMaxFree >= blockMinFree) return undefined;
  const max = `--${BLOCK_SETTINGS.blockMaxFree.flag}`;
  const min = `--${BLOCK_SETTINGS.blockMinFree.flag}`;
  return `${max} (${blockMaxFree}) is less than ${min} (${blockMinFree}): nodes would have to release the blocks that they get; increase ${max}`;
}
