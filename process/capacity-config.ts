import { COMMON_SETTINGS, type CommonConfig, IPAM_SETTINGS } from './config.js';
import { type Settings, duration, wholeNumber } from './setting.js';

/** The process that shows free addresses on nodes. */
export interface CapacityConfig extends CommonConfig {
  /** Nodes are written to at most this often. */
  readonly publishIntervalMs: number;
  /** How long schedulers may take to hear of a write. */
  readonly settleMs: number;
  /** How long a node keeps what a waiting pod could use and does not, before another node gets it. */
  readonly offerTimeoutMs: number;
  /** For how long agents may answer from their caches. */
  readonly maxStalenessMs: number;
  /** Each adds a key to every node. */
  readonly maxPublishedPools: number;
}

export const CAPACITY_SETTINGS: Settings<CapacityConfig> = {
  ...COMMON_SETTINGS,
  maxStalenessMs: IPAM_SETTINGS.maxStalenessMs,
  maxPublishedPools: {
    flag: 'max-published-pools',
    placeholder: 'number',
    description: 'of how many pools nodes show the free addresses at most: those shown already first, then the oldest',
    defaultValue: 64, // every key is in each heartbeat of each node
    parse: wholeNumber(1, 1_024),
  },
  publishIntervalMs: {
    flag: 'publish-interval',
    placeholder: 'duration',
    description: 'how often nodes are told at most how many addresses are free',
    defaultValue: 1_000,
    defaultText: '1s',
    parse: duration(100, 60_000),
  },
  settleMs: {
    flag: 'publish-settle',
    placeholder: 'duration',
    description: 'how long a scheduler may take to hear of that: so long what it was told before counts, too',
    defaultValue: 3_000,
    defaultText: '3s',
    parse: duration(100, 60_000),
  },
  offerTimeoutMs: {
    flag: 'publish-patience',
    placeholder: 'duration',
    description:
      'how long a node keeps an address that a waiting pod could use there and does not, before another node gets it',
    defaultValue: 20_000, // schedulers try a pod again after 10 s at most
    defaultText: '20s',
    parse: duration(100, 600_000),
  },
};
