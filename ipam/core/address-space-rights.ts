import { type Pool, firstSharedAddress } from './pool.js';

/** A pool that a NAD asks for. */
export interface AddressSpaceRequest {
  readonly pool: Pool;
  /** Of the NAD. */
  readonly namespace: string;
  /** The NAD names the address space; it does not merely have the network's name. */
  readonly isNamed: boolean;
}

/**
 * Whether a NAD may have its pool in an address space in which administrators have pools: each of these whose addresses it shares must serve
 * the NAD's namespace, and at least one must. Networks of one name share their address space by default and need no permission.
 * @param adminPools the administrators' pools in the address space
 * @returns why not, and what to do
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
