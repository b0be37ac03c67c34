import type { AddressPool } from '../../api/address-pool.js';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import { objectKey } from '../../api/meta.js';
import { ADDRESS_STATES, CAPACITY_STATES, formatCount } from '../../addressing/address-states.js';
import { formatCidr } from '../../addressing/address/cidr.js';
import { requireValidPool } from '../find-pool.js';
import type { Output } from '../output.js';
import type { Line } from '../terminal.js';
import { addressMapOf, formatRange } from './address-map.js';
import { DEFAULT_WIDTH, subnetLines } from './pool-map.js';
import { type Usage, familyUseOf, formatNamespaces, namespacesOf, problemsOf, usageBar } from './pools.js';
import { SpaceLeases, countFamily, largestFreeRange, topNamespaces, waitingClaims } from './summary.js';

const MAX_SHOWN = 10;
const MAX_BLOCKS_SHOWN = 8;

export interface PoolUsageView extends Usage {
  readonly pool: AddressPool;
  /** At least those that wait for the pool; undefined if the user may not list claims. */
  readonly claims: readonly IPAMClaim[] | undefined;
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** The width of the terminal; undefined if there is none. */
  readonly columns: number | undefined;
}

/**
 * Shows the use of a pool: counts, the map of each subnet, the largest free range, who has most addresses, and who waits.
 * @throws {CommandError} if its spec is invalid
 */
export function showPool(view: PoolUsageView): Output {
  const { pool: object, leases, now, claims, columns } = view;
  const pool = requireValidPool(object);
  const blocks = view.blocks.filter((block) => block.pool === pool.name);
  const map = addressMapOf(pool, { leases, blocks }, now);
  const ofSpace = new SpaceLeases(leases);
  const families = pool.families.map((family) => {
    const free = largestFreeRange(map, family);
    return {
      ...familyUseOf(countFamily(pool, family, ofSpace, now), family),
      ...(free !== undefined && { largestFreeRange: formatRange(free, family) }),
    };
  });
  const namespaces = topNamespaces(leases, pool.name);
  const waiting = claims && waitingClaims(object, claims).map(objectKey);
  const outside = map.outside.map(({ metadata }) => metadata.name);
  const isUnicode = columns !== undefined;
  const problems = problemsOf(object);
  return {
    data: {
      name: pool.name,
      network: pool.network,
      addressSpace: pool.addressSpace,
      namespaces: namespacesOf(object),
      families,
      problems,
      topNamespaces: namespaces,
      waiting,
      blocks: blocks.map(({ cidr, node }) => ({ cidr: formatCidr(cidr), node })),
      outside,
      subnets: map.subnets.map(({ cidr, runs }) => ({
        cidr: formatCidr(cidr),
        ranges: runs.map((run) => ({
          range: formatRange(run, cidr.family),
          state: run.state,
          ...(run.node !== undefined && { node: run.node }),
        })),
      })),
    },
    lines: (): Line[] => [
      [
        { text: `Pool ${pool.name}`, style: 'bold' },
        ` of network ${pool.network}, for namespaces: ${formatNamespaces(namespacesOf(object))}`,
      ],
      ...problems.map(({ reason, message }): Line => [{ text: `${reason}: ${message}`, style: 'red' }]),
      ...families.flatMap((use): Line[] => [
        [`${use.family}: `, usageBar(use, isUnicode), ` in use: ${countsText(use)}`],
        `  largest free range: ${use.largestFreeRange ?? 'none'}`,
      ]),
      '',
      ...map.subnets.flatMap((subnet) => [...subnetLines(subnet, columns ?? DEFAULT_WIDTH, isUnicode), '']),
      ...listLines(
        'Most addresses',
        namespaces.map(({ namespace, allocated }) => `${namespace}: ${allocated}`),
      ),
      ...(waiting === undefined ? ['Who waits is not shown: you may not list ipamclaims in all namespaces'] : []),
      ...listLines('Waiting for an address, oldest first', waiting ?? []),
      ...listLines(
        'Blocks',
        blocks.map(({ cidr, node }) => `${formatCidr(cidr)}: ${node}`),
        MAX_BLOCKS_SHOWN,
      ),
      ...listLines('Leases outside of its subnets', outside),
    ],
  };
}

function countsText(use: ReturnType<typeof familyUseOf>): string {
  const always = ['free', 'allocated'] as const;
  const others = CAPACITY_STATES.filter((state) => use[state] > 0 && !always.some((each) => each === state));
  return [
    ...[...always, ...others].map((state) => `${formatCount(use[state])} ${ADDRESS_STATES[state].text}`),
    `of ${formatCount(use.capacity)}`,
  ].join(', ');
}

function listLines(title: string, entries: readonly string[], max = MAX_SHOWN): string[] {
  if (entries.length === 0) return [];
  const more = entries.length > max ? [`  and ${entries.length - max} more`] : [];
  return [`${title}:`, ...entries.slice(0, max).map((entry) => `  ${entry}`), ...more];
}
