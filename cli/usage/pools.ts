import { omitUndefined } from '../../api/json.js';
import { CAPACITY_STATES, type CapacityState, formatCount } from '../../addressing/address-states.js';
import { type Family, formatFamily } from '../../addressing/address/address.js';
import { toSafeNumber } from '../../addressing/address/ranges.js';
import { type BlockRecord, readBlock } from '../../addressing/block/block.js';
import { type LeaseRecord, readLease } from '../../addressing/lease/lease.js';
import { compilePool } from '../../addressing/pool/pool.js';
import { type AddressPool, addressSpaceOf, nadNamespaceOf } from '../../api/address-pool.js';
import { BAD_POOL_CONDITIONS, PoolCondition } from '../../api/conditions.js';
import { type Condition, isBeingDeleted } from '../../api/meta.js';
import type { Client } from '../../kube/client.js';
import { ADDRESS_BLOCKS, ADDRESS_LEASES, ADDRESS_POOLS } from '../../kube/resources.js';
import { groupBy } from '../group-by.js';
import { type Column, type Output, tableLines } from '../output.js';
import { INSTALL_HOLDFAST, LEASE_PAGES, readList, required } from '../reader.js';
import type { Span, Style } from '../terminal.js';
import { SpaceLeases, type StateCounts, countFamily } from './summary.js';

/** The addresses of one family of a pool. Counts are capped at 2^53 - 1. */
interface FamilyUse extends Readonly<Record<CapacityState, number>> {
  readonly family: 'IPv4' | 'IPv6';
  /** All addresses that the pool may allocate, and those that are allocated. */
  readonly capacity: number;
}

export interface PoolUse {
  readonly name: string;
  readonly network: string;
  /** The namespaces that it serves; absent: all. */
  readonly namespaces?: readonly string[];
  /** Empty if its spec is invalid. */
  readonly families: readonly FamilyUse[];
  /** The number of blocks that are assigned to nodes. */
  readonly blocks: number;
  readonly problems: readonly PoolFinding[];
}

/** A line of the table. */
type FamilyRow = Omit<PoolUse, 'families'> & { readonly use: FamilyUse | undefined };

const BAR_WIDTH = 10;

const COLUMNS = (isUnicode: boolean): readonly Column<FamilyRow>[] => [
  { header: 'NAME', value: ({ name }) => name },
  { header: 'NETWORK', value: ({ network }) => network },
  { header: 'NAMESPACES', value: ({ namespaces }) => formatNamespaces(namespaces) },
  { header: 'FAMILY', value: ({ use }) => use?.family ?? '' },
  { header: 'FREE', value: ({ use }) => formatCount(use?.free) },
  { header: 'ALLOCATED', value: ({ use }) => formatCount(use?.allocated) },
  { header: 'COOLING', value: ({ use }) => formatCount(use && use.cooling + use.sticky) },
  { header: 'IN USE', value: ({ use }) => (use === undefined ? '' : usageBar(use, isUnicode)) },
  { header: 'BLOCKS', value: ({ blocks }) => String(blocks) },
  { header: 'QUARANTINED', value: ({ use }) => formatCount(use?.quarantined), isWide: true },
  { header: 'DRAINING', value: ({ use }) => formatCount(use?.draining) },
  { header: 'PROBLEMS', value: ({ problems }) => problemsCell(problems.map(({ reason }) => reason).join(', ')) },
  {
    header: 'MESSAGES',
    value: ({ problems }) => problemsCell(problems.map(({ message }) => message).join('; ')),
    isWide: true,
  },
];

/**
 * Lists pools with their use, by name.
 * @param now milliseconds since the epoch
 */
export function listPools(
  { pools, ...usage }: Usage & { readonly pools: readonly AddressPool[] },
  now: number,
  isUnicode: boolean,
): Output {
  const uses = usesOf(pools, usage, now);
  const rows = uses.flatMap(({ families, ...pool }): FamilyRow[] =>
    families.length === 0 ? [{ ...pool, use: undefined }] : families.map((use) => ({ ...pool, use })),
  );
  return {
    data: uses,
    lines: (isWide) => (rows.length === 0 ? ['no pools found'] : tableLines(COLUMNS(isUnicode), rows, isWide)),
  };
}

/** Returns the namespaces that a pool serves; undefined: all. */
export function namespacesOf(pool: AddressPool): readonly string[] | undefined {
  if (pool.spec.namespaces !== undefined) return pool.spec.namespaces;
  const own = nadNamespaceOf(pool);
  return own === undefined ? undefined : [own];
}

export function formatNamespaces(namespaces: readonly string[] | undefined): string {
  if (namespaces === undefined) return 'all';
  return namespaces.length <= 2 ? namespaces.join(', ') : `${namespaces[0] ?? ''} and ${namespaces.length - 1} more`;
}

/** Returns the counts of one family for people and programs. */
export function familyUseOf(counts: StateCounts, family: Family): FamilyUse {
  const capacity = CAPACITY_STATES.reduce((sum, state) => sum + counts[state], 0n);
  const uses = CAPACITY_STATES.map((state) => [state, toSafeNumber(counts[state])]);
  return {
    family: formatFamily(family),
    capacity: toSafeNumber(capacity),
    ...(Object.fromEntries(uses) as Record<CapacityState, number>),
  };
}

/** Formats a bar, and the share of the addresses that nobody else can get. */
export function usageBar({ capacity, free }: FamilyUse, isUnicode: boolean): Span {
  const share = capacity === 0 ? 1 : (capacity - free) / capacity;
  const filled = share === 0 ? 0 : Math.max(1, Math.floor(share * BAR_WIDTH));
  const [full, empty] = isUnicode ? ['█', '░'] : ['#', '-'];
  const text = `${full.repeat(filled)}${empty.repeat(BAR_WIDTH - filled)} ${formatShare(share)}`;
  const style: Style = share >= 0.95 ? 'red' : share >= 0.8 ? 'yellow' : 'green';
  return { text, style };
}

function usesOf(pools: readonly AddressPool[], { leases, blocks }: Usage, now: number): PoolUse[] {
  const groups = groupBy(leases, ({ addressSpace }) => addressSpace);
  const spaces = new Map([...groups].map(([space, each]) => [space, new SpaceLeases(each)]));
  const byPool = groupBy(blocks, ({ pool }) => pool);
  const uses = pools.map((object): PoolUse => {
    const { name } = object.metadata;
    const compiled = compilePool(object);
    const pool = compiled.ok ? compiled.pool : undefined;
    const ofSpace = spaces.get(pool?.addressSpace ?? '') ?? new SpaceLeases([]);
    return omitUndefined({
      ...{ name, network: object.spec.network, namespaces: namespacesOf(object) },
      blocks: byPool.get(name)?.length ?? 0,
      problems: problemsOf(object),
      families: pool?.families.map((family) => familyUseOf(countFamily(pool, family, ofSpace, now), family)) ?? [],
    });
  });
  return uses.sort((a, b) => (a.name < b.name ? -1 : 1));
}

function formatShare(share: number): string {
  if (share > 0 && share < 0.01) return '<1%';
  return `${Math.floor(share * 100)}%`;
}

function problemsCell(text: string): Span {
  return text === '' ? '' : { text, style: 'red' };
}

/** Leases and blocks, parsed. Objects that Holdfast cannot have made are left out: they lock nothing. */
export interface Usage {
  readonly leases: readonly LeaseRecord[];
  readonly blocks: readonly BlockRecord[];
}

type ListClient = Pick<Client, 'list' | 'listAs'>;

/** Reads all pools, with leases and blocks. @throws {CommandError} if Holdfast is not installed */
export async function readAllUsage(client: ListClient): Promise<Usage & { pools: readonly AddressPool[] }> {
  const pools = required(await readList(client, ADDRESS_POOLS), INSTALL_HOLDFAST);
  return { pools, ...(await readUsage(client)) };
}

/** Reads the blocks, and the leases of all address spaces or of that of a pool. */
export async function readUsage(client: ListClient, pool?: AddressPool): Promise<Usage> {
  const fieldSelector = pool && `spec.addressSpace=${addressSpaceOf(pool)}`;
  const [leases, blocks] = await Promise.all([
    client.listAs(ADDRESS_LEASES, (lease) => parsed(readLease, lease), {
      ...LEASE_PAGES,
      dropsManagedFields: true,
      fieldSelector,
    }),
    client.listAs(ADDRESS_BLOCKS, (block) => parsed(readBlock, block)),
  ]);
  return { leases: leases.items.flatMap((each) => each ?? []), blocks: blocks.items.flatMap((each) => each ?? []) };
}

function parsed<T, R>(parse: (object: T) => R, object: T): R | undefined {
  try {
    return parse(object);
  } catch (error) {
    if (error instanceof TypeError) return undefined;
    throw error;
  }
}

type PoolFinding = Pick<Condition, 'type' | 'reason' | 'message'>;

/** False for a pool that is being deleted, unless its leases keep it: a derived pool stays three minutes, and nobody need act. */
export function needsAction(
  { metadata }: Pick<AddressPool, 'metadata'>,
  { type, reason }: Pick<Condition, 'type' | 'reason'>,
) {
  return !isBeingDeleted({ metadata }) || (type === PoolCondition.DeletionBlocked && reason === 'Leased');
}

export function problemsOf(pool: Pick<AddressPool, 'metadata' | 'status'>): PoolFinding[] {
  return badConditionsOf(pool).map(({ type, reason, message }) => ({ type, reason, message }));
}

/** Returns the conditions of a pool that say that somebody should do something. */
export function badConditionsOf(pool: Pick<AddressPool, 'metadata' | 'status'>): Condition[] {
  return (pool.status?.conditions ?? [])
    .filter((condition) => needsAction(pool, condition))
    .filter(
      ({ type, status: is, reason }) =>
        reason === 'LeasedOutside' || BAD_POOL_CONDITIONS.some((bad) => bad.type === type && bad.status === is),
    );
}
