import { COMMON_SETTINGS, IPAM_SETTINGS } from './config.js';
import { parseResponderTemplate } from './responder-template.js';
import {
  type ConfigOf,
  FILE_PATH,
  OBJECT_NAME,
  duration,
  parseObjectName,
  parseText,
  settings,
  wholeNumber,
} from './setting.js';

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
const POD_NAME = {
  flag: 'pod-name',
  description: 'name of the pod of this process',
  defaultText: 'none',
  alternativeVariable: 'POD_NAME',
  ...OBJECT_NAME,
};

/** The configuration of a responder, which serves the guests of one pool and needs no leader election. */
export const RESPONDER_SETTINGS = settings({
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
});
export type ResponderConfig = ConfigOf<typeof RESPONDER_SETTINGS>;

/** The configuration of the process that gives guests their addresses. */
export const GUEST_SETTINGS = settings({
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
    // each has an entry in an index of tables, of which a policy allows 100
    ...wholeNumber(0, 5_000),
  },
  maxStalenessMs: IPAM_SETTINGS.maxStalenessMs,
});
export type GuestConfig = ConfigOf<typeof GUEST_SETTINGS>;
