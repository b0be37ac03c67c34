import type { Settings } from '../process/config/setting.js';

/** The configuration of a process that is started without flags. */
export function defaultConfig<Config extends object>(settings: Settings<Config>): Config {
  const fields = Object.entries<{ defaultValue: unknown }>(settings);
  return Object.fromEntries(fields.map(([field, { defaultValue }]) => [field, defaultValue])) as Config;
}
