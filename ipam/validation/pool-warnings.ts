import { type AddressPool, addressSpaceOf, nadNamespaceOf, isAdminPool } from '../../api/address-pool.js';
import { describeValue } from '../../api/json.js';
import { BITS, type Family, formatAddress } from '../../addressing/address/address.js';
import { type LeasableSet, type Pool, addressesOf } from '../../addressing/pool/pool.js';
import { RangeSet } from '../../addressing/address/ranges.js';
import { firstSharedAddress } from '../../addressing/pool/address-space-rights.js';
import { Slices } from '../../addressing/block/slices.js';
import { type PoolChange, unreleased } from './leased-addresses.js';
import { type ValidationView, hasCommonUsers } from './review.js';

/** The API server shows only a few short warnings. */
const MAX_WARNED_POOLS = 5;
/** Limits the time of a review. */
const MAX_COMPARED_POOLS = 256;

/** With fewer blocks nodes get none, because one is left for claims. */
const MIN_BLOCKS = 2n;

/** Warns of allowed settings that may be mistakes, in short steps: one line each, below 256 characters unless names are long. */
export function* warnOfPool(change: PoolChange, view: ValidationView): Generator<undefined, string[]> {
  return [
    ...warnOfCooldown(change.pool, view),
    ...warnOfNodeSelector(change.after),
    ...warnOfPoolGuard(change),
    ...warnOfBlocks(change),
    ...warnOfNoAddress(change),
    ...warnOfLeftOutNamespaces(change, view),
    ...warnOfReplacedPools(change, view),
    ...(yield* warnOfOverlaps(change, view)),
  ];
}

function warnOfCooldown({ spec: { cooldownSeconds } }: AddressPool, { minCooldownMs }: ValidationView): string[] {
  if (cooldownSeconds === undefined || cooldownSeconds * 1000 >= minCooldownMs) return [];
  return [
    `spec.cooldownSeconds: ${cooldownSeconds} is less than the minimum: addresses cool down for ${minCooldownMs / 1000} s, because a node may learn late that an address was released`,
  ];
}

/** Kubernetes, labels: a name, or a DNS subdomain, a slash and a name. A value is a name, or empty. */
const LABEL_NAME = /^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;
const LABEL_PREFIX = /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?\//;

function warnOfNodeSelector({ nodeSelector = {} }: Pool): string[] {
  return Object.entries(nodeSelector).flatMap(([label, value]) => {
    if (LABEL_NAME.test(label.replace(LABEL_PREFIX, '')) && (value === '' || LABEL_NAME.test(value))) return [];
    const text = `${describeValue(label)}: ${describeValue(value)}`;
    return [
      `spec.nodeSelector: no node can have the label ${text}, so none gets blocks, shows free addresses or runs responders: correct it`,
    ];
  });
}

/** Without a mode there is no guard. What it allows belongs to nobody, so the pool should not allocate it. */
function warnOfPoolGuard({ pool: { spec }, after }: PoolChange): string[] {
  if (spec.guard !== undefined && spec.guard.mode === undefined)
    return ['spec.guard: mode is absent, which means "Off": set it to Enforce or Observe, or remove guard'];
  const allowed = after.guard?.allow.flatMap(({ addresses }) => addresses) ?? [];
  return after.families.flatMap((family) => {
    const ranges = RangeSet.of(allowed.filter((each) => each.family === family));
    const value = addressesOf(after, family, 'open').firstShared(ranges);
    if (value === undefined) return [];
    return [
      `spec.guard.allow: the pool may allocate ${formatAddress({ family, value })} to others: add what is allowed to exclude or reserved`,
    ];
  });
}

/** Warns of a block size only if it is in the spec: with the default size, small pools are no mistake. */
function warnOfBlocks({ pool: { spec }, after }: PoolChange): string[] {
  return after.families.flatMap((family) => {
    const key = family === 4 ? 'ipv4' : 'ipv6';
    const size = spec.blockSize?.[key];
    const blocks = new Slices(after, family).count;
    if (typeof size !== 'number' || blocks >= MIN_BLOCKS) return [];
    const enough = sizeForBlocks(after, family, size);
    const remedy = enough === undefined ? '' : `write ${enough} or more, or `;
    return [
      `spec.blockSize.${key}: ${size} divides spec.subnets into ${blocks === 0n ? 'no blocks' : 'one block'}. Nodes get blocks only if there are at least two: ${remedy}add addresses`,
    ];
  });
}

/** The shortest longer prefix length that makes enough blocks. */
function sizeForBlocks(pool: Pool, family: Family, size: number): number | undefined {
  for (let longer = size + 1; longer <= BITS[family]; longer++) {
    const sliced = { ...pool, blockSize: { ...pool.blockSize, [family]: longer } };
    if (new Slices(sliced, family).count >= MIN_BLOCKS) return longer;
  }
  return undefined;
}

/** Warns if a family has no address, or if all of them are draining, except those in `reserved`. */
function warnOfNoAddress({ after }: PoolChange): string[] {
  const sizeOf = (family: Family, which: LeasableSet) => addressesOf(after, family, which).size;
  return after.families.flatMap((family) => {
    if (sizeOf(family, 'leasable') === 0n)
      return [
        `spec.subnets: ranges, exclude and gateway leave no IPv${family} address for pods and VMs. Correct them, or add a subnet or a range`,
      ];
    if (sizeOf(family, 'open') > 0n || sizeOf(family, 'requestable') === sizeOf(family, 'leasable')) return [];
    return [
      `spec.subnets: draining leaves no IPv${family} address for new pods and VMs, nor for VMs that are to leave the draining addresses. Add a subnet or a range, unless the network goes`,
    ];
  });
}

/** Warns of namespaces that are no longer served and have leases. */
function warnOfLeftOutNamespaces({ pool, after, before }: PoolChange, view: ValidationView): string[] {
  const { name, namespaces } = after;
  if (namespaces === undefined) return [];
  const isLeftOut = (namespace: string) => !namespaces.has(namespace) && (before?.namespaces?.has(namespace) ?? true);
  const owners = unreleased(view.leases.ofPool(name)).flatMap(({ owner }) => owner?.namespace ?? []);
  const leftOut = new Set(owners.filter(isLeftOut));
  const [first] = [...leftOut].sort();
  if (first === undefined) return [];
  const which = leftOut.size === 1 ? first : `${first} and ${leftOut.size - 1} more namespaces`;
  const remedy = isAdminPool(pool) ? '' : '. To serve them, add them to "namespaces" in the ipam object of the NAD';
  return [
    `spec.namespaces: workloads of ${which} have addresses of the pool. They keep them, but get no new ones${remedy}`,
  ];
}

/** An administrator's pool takes precedence over derived pools. */
function warnOfReplacedPools({ pool, oldPool }: PoolChange, view: ValidationView): string[] {
  if (!isAdminPool(pool)) return [];
  const replaced = view.pools.list().filter((other) => {
    return (
      !isAdminPool(other) && hasCommonUsers(pool, other) && (oldPool === undefined || !hasCommonUsers(oldPool, other))
    );
  });
  return replaced
    .slice(0, MAX_WARNED_POOLS)
    .map(
      ({ metadata: { name } }) =>
        `spec.network: this pool replaces AddressPool ${name}, which is derived from a NetworkAttachmentDefinition: existing leases stay`,
    );
}

/**
 * Two pools may share addresses. None is leased twice, but each pool seems larger than it is. A pool takes up to 30 ms to compile, and tenants decide how
 * many there are: so only pools of the address space are compared, at most a few, as the directory compiled them.
 */
function* warnOfOverlaps(
  { pool, after, reader }: PoolChange,
  { pools, networks }: ValidationView,
): Generator<undefined, string[]> {
  const isCompared = (other: AddressPool) =>
    other.metadata.name !== after.name &&
    addressSpaceOf(other) === after.addressSpace &&
    // an administrator's pool and the derived pools that it replaces do not both lease
    (isAdminPool(pool) === isAdminPool(other) || !hasCommonUsers(pool, other));
  const once = `each is leased only once in address space "${after.addressSpace}"`;
  const overlaps = new Set<string>();
  for (const other of pools.list().filter(isCompared).slice(0, MAX_COMPARED_POOLS)) {
    const { name } = other.metadata;
    const served = networks.pool(name);
    const shared = served && firstSharedAddress(after, served);
    yield;
    if (shared === undefined) continue;
    overlaps.add(
      // the name of a derived pool contains the namespace of its NAD
      isShown(other, reader)
        ? `spec.subnets: addresses from ${formatAddress(shared)} on are also in AddressPool ${name}: ${once}`
        : `spec.subnets: some addresses are also in a pool of others: ${once}`,
    );
  }
  return [...overlaps].slice(0, MAX_WARNED_POOLS);
}

/**
 * Whether a reader may learn the name and addresses of a pool. The name of a derived pool contains the namespace of its NAD.
 * @param reader a namespace; absent: an administrator
 */
function isShown(pool: AddressPool, reader: string | undefined): boolean {
  if (reader === undefined) return true;
  if (!isAdminPool(pool)) return nadNamespaceOf(pool) === reader;
  return pool.spec.namespaces?.includes(reader) ?? true;
}
