import { DEFAULT_MAX_DERIVED_POOLS } from '../../api/networks/nad-rights.js';
import { DEFAULT_GLOBAL_NAMESPACES } from '../../api/names.js';
import {
  type ConfigOf,
  BOOLEAN,
  OBJECT_NAME,
  OBJECT_NAMES,
  duration,
  parseText,
  settings,
  wholeNumber,
} from './setting.js';

/** What an administrator permits NetworkAttachmentDefinitions, by namespace. */
export const RIGHTS_SETTINGS = settings({
  globalNamespaces: {
    flag: 'global-namespaces',
    description:
      'pools of NetworkAttachmentDefinitions in these namespaces serve all namespaces, like globalNamespaces of Multus; other ones serve their own namespace and those that they name',
    defaultValue: DEFAULT_GLOBAL_NAMESPACES,
    defaultText: DEFAULT_GLOBAL_NAMESPACES.join(),
    ...OBJECT_NAMES,
  },
  capacityNamespaces: {
    flag: 'capacity-namespaces',
    description:
      "pools of NetworkAttachmentDefinitions in these namespaces may publish capacity on nodes; administrators' pools always may",
    defaultValue: [],
    defaultText: 'none',
    ...OBJECT_NAMES,
  },
  enforceAddressOwnership: {
    flag: 'enforce-address-ownership',
    description:
      'drain pools of NetworkAttachmentDefinitions that have addresses of pools that do not serve their namespaces, also if both have equal subnets',
    defaultValue: false,
    ...BOOLEAN,
  },
  maxDerivedPools: {
    flag: 'max-derived-pools-per-namespace',
    description:
      'how many pools are derived from NetworkAttachmentDefinitions of one namespace that is not in --global-namespaces; existing pools stay',
    defaultValue: DEFAULT_MAX_DERIVED_POOLS,
    ...wholeNumber(0, 10_000),
  },
});

const DAY_MS = 24 * 3_600_000;

/** How many addresses nodes get in blocks. */
export const BLOCK_SETTINGS = settings({
  blockMinFree: {
    flag: 'block-min-free',
    description: 'a node with fewer free addresses in its blocks of a pool gets another block',
    defaultValue: 8,
    ...wholeNumber(1, 65_536),
  },
  blockMaxFree: {
    flag: 'block-max-free',
    description: 'a node with more free addresses in its blocks of a pool must release an unused block',
    defaultValue: 72, // a block of the default size and the default of block-min-free
    ...wholeNumber(1, 1_000_000),
  },
  excessReleaseDelayMs: {
    flag: 'excess-release-delay',
    description: 'how long a node must have more free addresses than block-max-free before a block is taken back',
    ...duration('180s', 100, DAY_MS),
  },
});
export type BlockConfig = ConfigOf<typeof BLOCK_SETTINGS>;

/** @returns why the values cannot be combined; undefined if they can */
export function findBlockConfigProblem({
  blockMinFree = 0,
  blockMaxFree = Infinity,
}: Partial<BlockConfig>): string | undefined {
  if (blockMaxFree >= blockMinFree) return undefined;
  const max = `--${BLOCK_SETTINGS.blockMaxFree.flag}`;
  const min = `--${BLOCK_SETTINGS.blockMinFree.flag}`;
  return `${max} (${blockMaxFree}) is less than ${min} (${blockMinFree}): nodes would have to release the blocks that they get; increase ${max}`;
}

/** Which leases are released because their owner is gone. */
export const LEAK_SETTINGS = settings({
  collectAfterMs: {
    flag: 'collect-after',
    description: 'how long a lease must appear leaked before it is released',
    ...duration('60s', 100, DAY_MS),
  },
  agentNamespace: {
    flag: 'agent-namespace',
    description:
      'namespace of the agents: on a node with an agent, only the agent releases leases of pods that are gone',
    defaultValue: 'holdfast-agents',
    ...OBJECT_NAME,
  },
});

/** Where ipam writes who had which address. */
export const AUDIT_SETTINGS = settings({
  auditLog: {
    flag: 'audit-log',
    placeholder: 'file',
    description: 'file for the audit log, which says who had which address; - is standard output',
    defaultValue: undefined,
    defaultText: 'none, no audit log',
    parse: parseAuditLog,
  },
  auditMaxMiB: {
    flag: 'audit-max-size',
    description: 'size of a file of the audit log in MiB, after which a new one begins',
    defaultValue: 100,
    ...wholeNumber(1, 10_000),
    placeholder: 'MiB',
  },
  auditMaxFiles: {
    flag: 'audit-max-files',
    description: 'number of files of the audit log, the current one included; older ones are deleted',
    defaultValue: 5,
    ...wholeNumber(1, 1_000),
  },
});
export type AuditConfig = ConfigOf<typeof AUDIT_SETTINGS>;

function parseAuditLog(text: string): string {
  if (text !== '-' && !text.startsWith('/')) throw new TypeError('must be an absolute path, or - for standard output');
  return parseText(text);
}
