import { type Pool, firstSharedAddress } from './pool.js';

/** A request of a NAD to have its pool in an address space. */
export interface AddressSpaceRequest {
  readonly pool: Pool;
  /** The NAD's namespace. */
  readonly namespace: string;
  /** True if the NAD names the address space; false if it gets the network's name by default. */
  readonly isNamed: boolean;
}

/**
 * Returns why a NAD may not have its pool in an address space that contains administrators' pools, or undefined if it may.
 * At least one of these pools must serve the NAD's namespace, and so must each one that shares an address with the NAD's pool.
 * Networks of one name share their address space by default and need no permission.
 * @param adminPools the administrators' pools in the address space
 * @returns the reason, and what to do
 */
export function addressSpaceRefusal(
  { pool, namespace, isNamed }: AddressSpaceRequest,
  adminPools: readonly Pool[],
): string | undefined {
  const restrictingPools = adminPools.filter(({ network }) => isNamed || network !== pool.network);
  const excluding = restrictingPools.filter(({ namespaces }) => namespaces !== undefined && !namespaces.has(namespace));
  const [excludingPool] =
    excluding.length === restrictingPools.length
      ? excluding
      : excluding.filter((admin) => firstSharedAddress(admin, pool) !== undefined);
  if (excludingPool === undefined) return undefined;
  return (
    `"${pool.addressSpace}" is the address space of AddressPool ${excludingPool.name}, which does not serve namespace ${namespace}: ` +
    `use another address space, or ask the administrator to add ${namespace} to spec.namespaces of that pool`
  );
}
