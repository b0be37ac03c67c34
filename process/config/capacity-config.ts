import { COMMON_SETTINGS, type CommonConfig, IPAM_SETTINGS } from './config.js';
import { type Settings, duration, wholeNumber } from './setting.js';

/** The configuration of the process that shows free addresses on nodes. */
export interface CapacityConfig extends CommonConfig {
  /** The minimum time between two updates of nodes. */
  readonly publishIntervalMs: number;
  /** How long it may take until schedulers know about an update. */
  readonly settleMs: number;
  /** How long a node keeps an address for a pending pod that could use it, before another node gets it. */
  readonly offerTimeoutMs: number;
  /** How long agents may answer from their caches. */
  readonly maxStalenessMs: number;
  /** The maximum number of published pools, because each adds a resource to every node. */
  readonly maxPublishedPools: number;
}

export const CAPACITY_SETTINGS: Settings<CapacityConfig> = {
  ...COMMON_SETTINGS,
  maxStalenessMs: IPAM_SETTINGS.maxStalenessMs,
  maxPublishedPools: {
    flag: 'max-published-pools',
    description: 'maximum number of pools whose free addresses nodes show: first those already shown, then the oldest',
    defaultValue: 64, // every resource is in each heartbeat of each node
    ...wholeNumber(1, 1_024),
  },
  publishIntervalMs: {
    flag: 'publish-interval',
    description: 'minimum time between two updates of the free addresses on nodes',
    ...duration('1s', 100, 60_000),
  },
  settleMs: {
    flag: 'publish-settle',
    description: 'maximum time until schedulers see an update: until then, the previous number also counts as used',
    ...duration('3s', 100, 60_000),
  },
  offerTimeoutMs: {
    flag: 'publish-offer-timeout',
    description:
      'how long a node keeps an address for a pending pod that could use it, before another node gets the address',
    ...duration('20s', 100, 600_000), // schedulers retry a pod after at most 10 s
  },
};
