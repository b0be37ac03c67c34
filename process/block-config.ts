import type { Settings } from './setting.js';
import { duration, wholeNumber } from './setting.js';

/** What nodes are lent of pools. */
export interface BlockConfig {
  /** A node that has fewer free addresses than this in its blocks of a pool is lent another block. */
  readonly blockMinFree: number;
  /** A node that has more than this is asked for a block that it does not use. */
  readonly blockMaxFree: number;
  /** For how long it must have had more. */
  readonly excessReleaseDelayMs: number;
}

const DAY_MS = 24 * 3_600_000;

export const BLOCK_SETTINGS: Settings<BlockConfig> = {
  blockMinFree: {
    flag: 'block-min-free',
    placeholder: 'number',
    description: 'a node with fewer free addresses in its blocks of a pool is lent another block',
    defaultValue: 8,
    parse: wholeNumber(1, 65_536),
  },
  blockMaxFree: {
    flag: 'block-max-free',
    placeholder: 'number',
    description: 'a node with more free addresses in its blocks of a pool is asked for one that it does not use',
    defaultValue: 72, // a whole block of the default size, and what a node shall have
    parse: wholeNumber(1, 1_000_000),
  },
  excessReleaseDelayMs: {
    flag: 'excess-release-delay',
    placeholder: 'duration',
    description: 'for how long a node must have had too many free addresses before it is asked for a block',
    defaultValue: 180_000,
    defaultText: '180s',
    parse: duration(100, DAY_MS),
  },
};

/** @returns what is wrong with the two together */
export function findBlockConfigProblem({ blockMinFree, blockMaxFree }: BlockConfig): string | undefined {
  if (blockMaxFree >= blockMinFree) return undefined;
  const max = `--${BLOCK_SETTINGS.blockMaxFree.flag}`;
  const min = `--${BLOCK_SETTINGS.blockMinFree.flag}`;
  return `${max} is ${blockMaxFree}, less than ${min}, ${blockMinFree}: nodes would be asked for what they are lent; give ${max} at least as much`;
}
