import { COMMON_SETTINGS, type CommonConfig, IPAM_SETTINGS } from './config.js';
import { type ResponderTemplate, parseResponderTemplate } from './responder-template.js';
import {
  type Setting,
  type Settings,
  FILE_PATH,
  OBJECT_NAME,
  duration,
  parseObjectName,
  parseText,
  wholeNumber,
} from './setting.js';

/** The configuration of a responder, which serves the guests of one pool and needs no leader election. */
export interface ResponderConfig extends Omit<
  CommonConfig,
  'leaderElect' | 'featureGates' | 'featureGatesFromKubevirt'
> {
  /** The AddressPool whose guests are served. */
  readonly pool: string;
  /** The name of the pod, which is that of the claim with the responder's addresses. */
  readonly podName: string;
  /** The Unix socket of holdfast-packets. */
  readonly packetSocket: string;
  /** The interface that is attached to the network of the pool. */
  readonly guestInterface: string;
  /** How long the table may be used while the API server is away. */
  readonly maxStalenessMs: number;
}

const {
  leaderElect: _leaderElect,
  featureGates: _featureGates,
  featureGatesFromKubevirt: _fromKubevirt,
  ...COMMON
} = COMMON_SETTINGS;

/** Below it, guest and responders cannot know in time that a table is current. */
const MIN_RESPONDER_STALENESS_MS = 10_000;

/** How long responders may use their tables. */
export function responderStalenessMs({ maxStalenessMs }: Pick<GuestConfig, 'maxStalenessMs'>): number {
  return Math.max(maxStalenessMs, MIN_RESPONDER_STALENESS_MS);
}

/** The name of the pod of a process, which its manifest sets. */
const POD_NAME: Omit<Setting<string | undefined>, 'defaultValue'> & { parse: (text: string) => string } = {
  flag: 'pod-name',
  description: 'name of the pod of this process',
  defaultText: 'none',
  alternativeVariable: 'POD_NAME',
  ...OBJECT_NAME,
};

export const RESPONDER_SETTINGS: Settings<ResponderConfig> = {
  ...COMMON,
  maxStalenessMs: { ...IPAM_SETTINGS.maxStalenessMs, ...duration('30s', MIN_RESPONDER_STALENESS_MS, 3_600_000) },
  pool: {
    flag: 'pool',
    placeholder: 'name',
    description: 'AddressPool whose guests are served',
    defaultValue: '',
    defaultText: 'none, required',
    isRequired: true,
    parse: parseObjectName,
  },
  podName: { ...POD_NAME, isRequired: true, defaultValue: '' },
  packetSocket: {
    flag: 'packet-socket',
    description: 'Unix socket of holdfast-packets, which sends and receives packets',
    defaultValue: '/run/holdfast-packets/packets.sock',
    ...FILE_PATH,
  },
  guestInterface: {
    flag: 'guest-interface',
    placeholder: 'name',
    description: 'interface of the pod on the network of the guests',
    defaultValue: 'guest0',
    parse: parseText,
  },
};

/** The configuration of the process that gives guests their addresses. */
export interface GuestConfig extends CommonConfig {
  /** How long a guest may have other addresses than its claim before this is reported. */
  readonly guestGraceMs: number;
  /** The name of this process' pod, whose image responders get. */
  readonly podName?: string | undefined;
  /** The image of responders, instead of that of the pod. */
  readonly responderImage?: string | undefined;
  /** Settings for the pods of responders. */
  readonly responderTemplate: ResponderTemplate;
  /** How many pools may have responders. */
  readonly maxResponderPools: number;
  /** How long responders may answer from their tables while the API server is away. */
  readonly maxStalenessMs: number;
}

export const GUEST_SETTINGS: Settings<GuestConfig> = {
  ...COMMON_SETTINGS,
  guestGraceMs: {
    flag: 'guest-grace',
    description:
      'how long a guest may have other addresses than its claim, after it started or the claim changed, before an event reports it',
    ...duration('60s', 100, 3_600_000),
  },
  podName: { ...POD_NAME, defaultValue: undefined },
  responderImage: {
    flag: 'responder-image',
    placeholder: 'image',
    description: 'image of responders',
    defaultValue: undefined,
    defaultText: 'none, the image of the pod of this process',
    parse: parseText,
  },
  responderTemplate: {
    flag: 'responder-template',
    placeholder: 'JSON',
    description:
      'settings for the pods of responders: an object with resources, packetsResources, tolerations, nodeSelector, priorityClassName, podAnnotations and podLabels',
    defaultValue: {},
    defaultText: 'none',
    parse: parseResponderTemplate,
  },
  maxResponderPools: {
    flag: 'max-responder-pools',
    description: 'maximum number of pools that have responders; the oldest come first',
    defaultValue: 32,
    // the index of the tables has 48 bytes for each, and every responder reads it
    ...wholeNumber(0, 1_024),
  },
  maxStalenessMs: IPAM_SETTINGS.maxStalenessMs,
};
