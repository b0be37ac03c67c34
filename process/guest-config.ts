import { COMMON_SETTINGS, type CommonConfig, IPAM_SETTINGS } from './config.js';
import { POD_NAME } from './responder-config.js';
import { type ResponderTemplate, parseResponderTemplate } from './responder-template.js';
import { type Settings, duration, parseText, wholeNumber } from './setting.js';

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
    placeholder: 'duration',
    description:
      'how long a guest may have other addresses than its claim, after it started or the claim changed, before an event reports it',
    defaultValue: 60_000,
    defaultText: '60s',
    parse: duration(100, 3_600_000),
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
    placeholder: 'number',
    description: 'maximum number of pools that have responders; the oldest come first',
    defaultValue: 32,
    parse: wholeNumber(0, 256),
  },
  maxStalenessMs: IPAM_SETTINGS.maxStalenessMs,
};
