import { type Pool, firstSharedAddress } from './pool.js';

/** A pool that a NAD asks for. */
export interface SpaceRequest {
  readonly pool: Pool;
  /** Of the NAD. */
  readonly namespace: string;
  /** The NAD names the address space; it does not merely have the network's name. */
  readonly isNamed: boolean;
}

/**
 * Whether a NAD may have its pool in an address space in which administrators have pools: each of these whose addresses it shares must serve
 * the NAD's namespace, and at least one must. Networks of one name share their address space by default and need no permission.
 * @param admins the administrators' pools in the address space
 * @returns why not, and what to do
 */
export function spaceRefusal({ pool, namespace, isNamed }: SpaceRequest, admins: readonly Pool[]): string | undefined {
  const guards = admins.filter(({ network }) => isNamed || network !== pool.network);
  const excluding = guards.filter(({ namespaces }) => namespaces !== undefined && !namespaces.has(namespace));
  const [guard] =
    excluding.length === guards.length
      ? excluding
      : excluding.filter((admin) => firstSharedAddress(admin, pool) !== undefined);
  if (guard === undefined) return undefined;
  return (
    `"${pool.addressSpace}" is the address space of AddressPool ${guard.name}, which does not serve namespace ${namespace}: ` +
    `use another address space, or ask the administrator to add ${namespace} to spec.namespaces of that pool`
  );
}
