import { type AddressPool, nadNamespaceOf } from '../../api/address-pool.js';
import { BITS, type Family, formatAddress } from '../core/address.js';
import { type Pool, firstSharedAddress } from '../core/pool.js';
import { Slices } from '../core/slices.js';
import type { PoolChange } from './leased-addresses.js';
import { unreleased } from './unreleased-leases.js';
import { hasCommonUsers, isAdminPool, servablePool } from './pool-relations.js';
import type { ValidationView } from './view.js';

/** The API server shows a few short lines. */
const MAX_WARNED_POOLS = 5;

/** One is for claims: of fewer, nodes are lent nothing. */
const MIN_BLOCKS = 2n;

/** What is allowed and may not be meant: one line each, below 256 characters where names are not long. */
export function warnOfPool(change: PoolChange, view: ValidationView): string[] {
  return [
    ...warnOfCooldown(change.pool, view),
    ...warnOfBlocks(change),
    ...warnOfLeftOutNamespaces(change, view),
    ...warnOfReplacedPools(change, view),
    ...warnOfOverlaps(change, view),
  ];
}

function warnOfCooldown({ spec: { cooldownSeconds } }: AddressPool, { minCooldownMs }: ValidationView): string[] {
  if (cooldownSeconds === undefined || cooldownSeconds * 1000 >= minCooldownMs) return [];
  return [
    `spec.cooldownSeconds: ${cooldownSeconds} is short: addresses cool down for ${minCooldownMs / 1000} s all the same, as long as a node may not know that one was released`,
  ];
}

/** A size that somebody has written: with that of nobody, small pools are no mistake. */
function warnOfBlocks({ pool: { spec }, after }: PoolChange): string[] {
  return after.families.flatMap((family) => {
    const key = family === 4 ? 'ipv4' : 'ipv6';
    const size = spec.blockSize?.[key];
    const blocks = new Slices(after, family).count;
    if (typeof size !== 'number' || blocks >= MIN_BLOCKS) return [];
    const enough = sizeForBlocks(after, family, size);
    const remedy = enough === undefined ? '' : `write ${enough} or more, or `;
    return [
      `spec.blockSize.${key}: ${size} makes ${blocks === 0n ? 'no block' : 'one block'} of spec.subnets, and of fewer than two, nodes are lent none: ${remedy}add addresses`,
    ];
  });
}

/** The shortest prefix length, longer than that given, of which there are blocks enough. */
function sizeForBlocks(pool: Pool, family: Family, size: number): number | undefined {
  for (let longer = size + 1; longer <= BITS[family]; longer++) {
    const sliced = { ...pool, blockSize: { ...pool.blockSize, [family]: longer } };
    if (new Slices(sliced, family).count >= MIN_BLOCKS) return longer;
  }
  return undefined;
}

/** Namespaces that are left out now and have leases. */
function warnOfLeftOutNamespaces({ pool, after, before }: PoolChange, view: ValidationView): string[] {
  const { name, namespaces } = after;
  if (namespaces === undefined) return [];
  const isLeftOut = (namespace: string) => !namespaces.has(namespace) && (before?.namespaces?.has(namespace) ?? true);
  const owners = unreleased(view.leases.ofPool(name)).flatMap(({ owner }) => owner?.namespace ?? []);
  const leftOut = new Set(owners.filter(isLeftOut));
  const [first] = [...leftOut].sort();
  if (first === undefined) return [];
  const which = leftOut.size === 1 ? first : `${first} and ${leftOut.size - 1} more namespaces`;
  const remedy = isAdminPool(pool) ? '' : '; to serve them, add them to "namespaces" in the ipam object of the NAD';
  return [
    `spec.namespaces: workloads of ${which} have addresses of the pool: they keep them, and get no others${remedy}`,
  ];
}

/** An admin's pool wins over those made of NADs. */
function warnOfReplacedPools({ pool, oldPool }: PoolChange, view: ValidationView): string[] {
  if (!isAdminPool(pool)) return [];
  const taken = view.pools.list().filter((other) => {
    return (
      !isAdminPool(other) && hasCommonUsers(pool, other) && (oldPool === undefined || !hasCommonUsers(oldPool, other))
    );
  });
  return taken
    .slice(0, MAX_WARNED_POOLS)
    .map(
      ({ metadata: { name } }) =>
        `spec.network: this pool serves in place of AddressPool ${name}, which was made of a NetworkAttachmentDefinition: what is leased there stays`,
    );
}

/** Two pools may share addresses, and none is ever leased twice; but each seems larger than it is. */
function warnOfOverlaps({ pool, after, reader }: PoolChange, view: ValidationView): string[] {
  const overlaps = view.pools.list().flatMap((other) => {
    // of an admin's pool and those that it serves in place of, one alone leases
    const replaces = isAdminPool(pool) !== isAdminPool(other) && hasCommonUsers(pool, other);
    if (other.metadata.name === after.name || replaces) return [];
    const served = servablePool(other);
    const shared = served?.addressSpace === after.addressSpace ? firstSharedAddress(after, served) : undefined;
    if (shared === undefined) return [];
    // the name of a derived pool tells the namespace of its NAD
    const isShown = reader === undefined || isAdminPool(other) || nadNamespaceOf(other) === reader;
    const which = isShown ? `AddressPool ${other.metadata.name}` : 'a pool of another namespace';
    return [
      `spec.subnets: addresses from ${formatAddress(shared)} on are in ${which}, too: in address space "${after.addressSpace}" each is leased once`,
    ];
  });
  return overlaps.slice(0, MAX_WARNED_POOLS);
}
