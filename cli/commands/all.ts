import type { Command } from '../command.js';
import { BUNDLE } from './bundle.js';
import { COMPLETION } from './completion.js';
import { DOCTOR } from './doctor.js';
import { IPS } from './ips.js';
import { MIGRATE_WHEREABOUTS } from './migrate-whereabouts.js';
import { POOL, POOLS } from './pools.js';
import { RELEASE } from './release.js';
import { RESERVE, UNRESERVE } from './reserve.js';
import { STATUS } from './status.js';
import { TRACE_VM } from './trace-vm.js';
import { UI } from './ui.js';
import { UNINSTALL } from './uninstall.js';
import { SHOW_VERSION } from './version.js';
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
