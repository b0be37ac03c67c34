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
    placeholder: 'number',
    description: 'maximum number of pools whose free addresses nodes show: first those already shown, then the oldest',
    defaultValue: 64, // every resource is in each heartbeat of each node
    parse: wholeNumber(1, 1_024),
  },
  publishIntervalMs: {
    flag: 'publish-interval',
    placeholder: 'duration',
    description: 'minimum time between two updates of the free addresses on nodes',
    defaultValue: 1_000,
    defaultText: '1s',
    parse: duration(100, 60_000),
  },
  settleMs: {
    flag: 'publish-settle',
    placeholder: 'duration',
    description: 'maximum time until schedulers see an update: until then, the previous number also counts as used',
    defaultValue: 3_000,
    defaultText: '3s',
    parse: duration(100, 60_000),
  },
  offerTimeoutMs: {
    flag: 'publish-offer-timeout',
    placeholder: 'duration',
    description:
      'how long a node keeps an address for a pending pod that could use it, before another node gets the address',
    defaultValue: 20_000, // schedulers retry a pod after at most 10 s
    defaultText: '20s',
    parse: duration(100, 600_000),
  },
};
