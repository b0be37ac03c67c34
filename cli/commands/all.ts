import type { Command } from '../command.js';
import { BUNDLE } from './bundle.js';
import { COMPLETION } from './completion.js';
import { DOCTOR, SHOW_VERSION, STATUS, TRACE_VM } from './diagnosis.js';
import { IPS, POOL, POOLS, RELEASE, RESERVE, UNRESERVE } from './addresses.js';
import { MIGRATE_WHEREABOUTS } from './migrate-whereabouts.js';
import { UI } from './ui.js';
import { UNINSTALL } from './uninstall.js';
import { WHO } from './who.js';

/** All commands, in the order of the help. */
export const COMMANDS: readonly Command[] = [
  STATUS,
  DOCTOR,
  IPS,
  WHO,
  TRACE_VM,
  POOLS,
  POOL,
  UI,
  RESERVE,
  UNRESERVE,
  RELEASE,
  MIGRATE_WHEREABOUTS,
  UNINSTALL,
  BUNDLE,
  COMPLETION,
  SHOW_VERSION,
];

/** First words that several commands share. */
export const GROUPS: Readonly<Record<string, string>> = {
  migrate: 'migrate from another IPAM',
  trace: 'find out why something has no address',
};
