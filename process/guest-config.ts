import { COMMON_SETTINGS, type CommonConfig } from './config.js';
import { type Settings, duration } from './setting.js';

/** The configuration of the process that gives guests their addresses. */
export interface GuestConfig extends CommonConfig {
  /** How long a guest may have other addresses than its claim before this is reported. */
  readonly guestGraceMs: number;
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
};
