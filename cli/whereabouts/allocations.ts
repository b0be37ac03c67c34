import { describeValue, isRecord } from '../../api/json.js';
import { objectKey } from '../../api/meta.js';
import {
  type Address,
  AddressError,
  BITS,
  formatAddress,
  parseAddressOrPrefix,
  readAddress,
} from '../../addressing/address/address.js';
import { containsAddress, formatCidr, networkOf, overlap } from '../../addressing/address/cidr.js';
import { groupBy } from '../group-by.js';
import type { ActivePods } from './active-pods.js';
import type { Conflict, LeftOut, LeftOutReason, MigrationObservation, WhereaboutsObject } from './plan-types.js';
import type { SourceNad } from './nads.js';
import { ipPoolName, readReservationName, sliceNames, spellingsOf } from './object-names.js';
import { cidrsOf } from './target-pools.js';

/** An address that whereabouts has allocated. */
export interface Allocation {
  readonly source: string;
  readonly address: Address;
  /** The NADs to which it may belong, oldest first; at least one. */
  readonly nads: readonly SourceNad[];
  /** `namespace/name`; absent if it is invalid, as in old versions. */
  readonly pod?: string;
  readonly containerID?: string;
  readonly interface?: string;
  /** `namespace/name` of the IPAMClaim that holds it. */
  readonly claim?: string;
}

interface ReadAllocations {
  readonly allocations: Allocation[];
  readonly conflicts: Conflict[];
  readonly leftOut: LeftOut[];
}

/** Reads IPPools and reservations. Never throws: invalid entries are left out, with a reason. */
export function readAllocations(
  { ipPools, reservations, slices }: Pick<MigrationObservation, 'ipPools' | 'reservations' | 'slices'>,
  nads: readonly SourceNad[],
  pods: Pick<ActivePods, 'get'>,
): ReadAllocations {
  const found: ReadAllocations = { allocations: [], conflicts: [], leftOut: [] };
  const byPool = nadsByPool(nads, slices);
  for (const pool of ipPools) {
    readPool(pool, { own: nadsOf(pool, nads, byPool), nads, pods }, found);
  }
  const networkNames = [...new Set(nads.map(({ networkName }) => networkName))].filter((name) => name !== '');
  for (const reservation of reservations) readReservation(reservation, { nads, networkNames }, found);
  return found;
}

/** Returns the NADs to migrate, and those migrated already for which whereabouts has IPPools. */
export function findRelevantNads(
  nads: readonly SourceNad[],
  { ipPools, slices }: Pick<MigrationObservation, 'ipPools' | 'slices'>,
): SourceNad[] {
  const byPool = nadsByPool(nads, slices);
  const known = new Set(ipPools.flatMap((pool) => nadsOf(pool, nads, byPool)));
  return nads.filter((nad) => !nad.hasMoved || known.has(nad));
}

function nadsOf(
  pool: WhereaboutsObject,
  nads: readonly SourceNad[],
  byPool: ReadonlyMap<string, SourceNad[]>,
): readonly SourceNad[] {
  const found = [byPool.get(pool.metadata.name) ?? [], nadsOfRemovedSlice(pool, nads), nadsOfChangedRange(pool, nads)];
  return found.find(({ length }) => length > 0) ?? [];
}

/** Finds the NADs of an IPPool whose range no NAD has any more: the range was changed, or other NADs have a part of it. */
function nadsOfChangedRange(pool: WhereaboutsObject, nads: readonly SourceNad[]): SourceNad[] {
  const { range } = isRecord(pool.spec) ? pool.spec : {};
  if (typeof range !== 'string') return [];
  return overlappingNads(pool, nads).filter(({ networkName }) =>
    spellingsOf(range).some((spelling) => ipPoolName(spelling, networkName) === pool.metadata.name),
  );
}

/** Returns the NADs whose ranges overlap that of the IPPool, with any `network_name`. */
function overlappingNads({ spec }: WhereaboutsObject, nads: readonly SourceNad[]): SourceNad[] {
  const read = isRecord(spec) && typeof spec.range === 'string' ? readRange(spec.range) : undefined;
  if (read === undefined) return [];
  const range = networkOf(read.first, read.prefixLength);
  return nads.filter((nad) => cidrsOf(nad).some((cidr) => overlap(cidr, range)));
}

function nadsByPool(nads: readonly SourceNad[], slices: readonly WhereaboutsObject[]): Map<string, SourceNad[]> {
  return groupBy(nads, ({ network, networkName, config }) => {
    const ranges = config.ranges.flatMap(({ range }) => spellingsOf(range));
    const names = ranges.map((range) => ipPoolName(range, networkName));
    return [...new Set([...names, ...sliceNames(slices, network, networkName)])];
  });
}

/** Finds the NADs of a slice that no NodeSlicePool lists any more because its node is gone. */
function nadsOfRemovedSlice({ metadata, spec }: WhereaboutsObject, nads: readonly SourceNad[]): SourceNad[] {
  const range = isRecord(spec) ? spec.range : undefined;
  const first = typeof range === 'string' ? readAddress(range) : undefined;
  if (typeof range !== 'string' || first === undefined) return [];
  return nads.filter((nad) => {
    if (nad.place.ipam.node_slice_size === undefined || !cidrsOf(nad).some((cidr) => containsAddress(cidr, first)))
      return false;
    const prefix = nad.networkName === '' ? '' : `${nad.networkName}-`;
    return metadata.name.startsWith(prefix) && metadata.name.endsWith(`-${ipPoolName(range)}`);
  });
}

/** The NADs and pods with which an IPPool is read. */
interface PoolContext {
  /** The NADs of the IPPool. */
  readonly own: readonly SourceNad[];
  readonly nads: readonly SourceNad[];
  readonly pods: Pick<ActivePods, 'get'>;
}

/** Reads an IPPool without a NAD. The addresses of its active pods cannot be leased. */
function readOrphanPool(
  object: WhereaboutsObject,
  { nads, pods }: Omit<PoolContext, 'own'>,
  found: ReadAllocations,
): void {
  const source = `IPPool ${objectKey(object)}`;
  const { allocations } = isRecord(object.spec) ? object.spec : {};
  const entries: unknown[] = isRecord(allocations) ? Object.values(allocations) : [];
  const live = entries.flatMap((entry) => {
    const key = isRecord(entry) ? readObjectKey(entry.podref) : undefined;
    return key !== undefined && pods.get(key) ? [key] : [];
  });
  if (live.length === 0) {
    const message = `no NAD with whereabouts uses it (${entries.length} allocations)`;
    found.leftOut.push({ reason: 'no-nad', source, message, networks: [] });
    return;
  }
  found.conflicts.push({
    kind: 'range',
    subject: source,
    message: `has allocations of ${live.length} active pods, such as ${live[0] ?? ''}, but no NAD with whereabouts uses it: create its NAD again with the same range and network_name, or delete the pods`,
    networks: cniNetworksOf(overlappingNads(object, nads)),
  });
}

function readPool(object: WhereaboutsObject, { own: nads, ...all }: PoolContext, found: ReadAllocations): void {
  const source = `IPPool ${objectKey(object)}`;
  const leave = (reason: LeftOutReason, message: string) =>
    found.leftOut.push({ reason, source, message, networks: cniNetworksOf(nads) });
  if (!isRecord(object.spec)) return void leave('unreadable', `spec is ${describeValue(object.spec)}`);
  const { range, allocations = {} } = object.spec;
  if (allocations !== null && !isRecord(allocations)) {
    return void leave('unreadable', `spec.allocations is ${describeValue(allocations)}`);
  }
  const entries = Object.entries(allocations ?? {});
  if (nads.length === 0) {
    readOrphanPool(object, all, found);
    return;
  }
  const read = typeof range === 'string' ? readRange(range) : undefined;
  if (read === undefined) return void leave('unreadable', `spec.range is ${describeValue(range)}`);
  for (const [offset, allocation] of entries) {
    const entry = { ...read, offset, allocation, source: `${source} allocation ${describeValue(offset)}`, nads };
    readAllocation(entry, found);
  }
}

/** Offsets count from the address as written, including its host bits. */
function readRange(range: string): Pick<AllocationEntry, 'first' | 'prefixLength'> | undefined {
  try {
    const { address: first, prefixLength } = parseAddressOrPrefix(range);
    return prefixLength === undefined ? undefined : { first, prefixLength };
  } catch (error) {
    if (error instanceof AddressError) return undefined;
    throw error;
  }
}

interface AllocationEntry {
  readonly first: Address;
  readonly prefixLength: number;
  readonly offset: string;
  readonly allocation: unknown;
  readonly source: string;
  readonly nads: readonly SourceNad[];
}

function readAllocation(
  { first, prefixLength, offset, allocation, source, nads }: AllocationEntry,
  found: ReadAllocations,
): void {
  const leave = (reason: LeftOutReason, message: string, of: Pick<LeftOut, 'address'> = {}) =>
    found.leftOut.push({ reason, source, message, networks: cniNetworksOf(nads), ...of });
  if (!/^\d{1,39}$/.test(offset))
    return void leave('unreadable', 'the key is not an offset from the first address of the range');
  const value = first.value + BigInt(offset);
  const range = networkOf(first, prefixLength);
  if (value >> BigInt(BITS[first.family]) !== 0n || !containsAddress(range, { family: first.family, value }))
    return void leave('outside', `the offset is outside ${formatCidr(range)}`);
  const address = { family: first.family, value };
  if (!isRecord(allocation)) {
    const problem = `it is ${describeValue(allocation)}, not an object`;
    return void leave('unreadable', problem, { address: formatAddress(address) });
  }
  found.allocations.push({ source, address, nads, ...readUser(allocation) });
}

function readReservation(
  object: WhereaboutsObject,
  { nads, networkNames }: { nads: readonly SourceNad[]; networkNames: readonly string[] },
  found: ReadAllocations,
): void {
  const source = `OverlappingRangeIPReservation ${objectKey(object)}`;
  const readings = readReservationName(object.metadata.name, networkNames).map(({ networkName, address }) => ({
    address,
    own: nads.filter(
      (nad) => nad.networkName === networkName && cidrsOf(nad).some((cidr) => containsAddress(cidr, address)),
    ),
  }));
  const read = readings.find(({ own }) => own.length > 0) ?? readings[0];
  const leave = (reason: LeftOutReason, message: string) =>
    found.leftOut.push({
      ...{ reason, source, message, networks: cniNetworksOf(read?.own ?? []) },
      ...(read && { address: formatAddress(read.address) }),
    });
  if (read === undefined) return void leave('unreadable', 'its name is not an address');
  const { address, own } = read;
  if (own.length === 0) return void leave('no-nad', 'no NAD with whereabouts has a range that contains it');
  if (!isRecord(object.spec)) return void leave('unreadable', `spec is ${describeValue(object.spec)}`);
  found.allocations.push({ source, address, nads: own, ...readUser({ ...object.spec, id: object.spec.containerid }) });
}

type AllocationUser = Pick<Allocation, 'pod' | 'containerID' | 'interface' | 'claim'>;

/** Returns the fields with valid values. */
function readUser({ id, podref, ifname, ipamclaimref }: Record<string, unknown>): AllocationUser {
  const pod = readObjectKey(podref);
  const claim = readObjectKey(ipamclaimref);
  return {
    ...(pod && { pod }),
    ...(claim && { claim }),
    ...(typeof id === 'string' && /^[\w.-]{1,253}$/.test(id) && { containerID: id }),
    ...(typeof ifname === 'string' && /^[^\s/]{1,15}$/.test(ifname) && { interface: ifname }),
  };
}

/** @returns `namespace/name`; undefined if the value is something else */
function readObjectKey(value: unknown): string | undefined {
  return typeof value === 'string' && /^[a-z0-9-]{1,63}\/[a-z0-9.-]{1,253}$/.test(value) ? value : undefined;
}

/** Returns the CNI networks of NADs, each once. */
export function cniNetworksOf(nads: readonly SourceNad[]): string[] {
  return [...new Set(nads.map(({ network }) => network))];
}
