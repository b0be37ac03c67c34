import {
  type ControllerConfig,
  type IpamConfig,
  type WebhookConfig,
  CONTROLLER_SETTINGS,
  IPAM_SETTINGS,
  WEBHOOK_SETTINGS,
} from './config.js';
import { type GuestConfig, GUEST_SETTINGS } from './guest-config.js';
import type { Settings } from './setting.js';

/** The configuration of the processes that `holdfast all` runs. */
export type AllConfig = ControllerConfig & WebhookConfig & IpamConfig & GuestConfig;

export const ALL_SETTINGS: Settings<AllConfig> = {
  ...CONTROLLER_SETTINGS,
  ...WEBHOOK_SETTINGS,
  ...IPAM_SETTINGS,
  ...GUEST_SETTINGS,
};
