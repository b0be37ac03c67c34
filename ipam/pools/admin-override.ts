import { isServingNamespace } from '../directory/resolution.js';
import type { EvaluatedPool } from '../directory/pool-state.js';

/** An admin's pool has users of a derived one. */
export interface AdminOverride {
  /** Whether nobody is left. Otherwise workloads of other namespaces may be, by the NADs that the pool is derived from. */
  readonly isComplete: boolean;
  readonly message: string;
}

/**
 * @param derived a pool, the namespace of its NADs, and the namespaces that it serves; absent: all
 * @param pools those of the network
 * @returns undefined where no admin's pool is for that namespace
 */
export function adminOverrideOf(
  {
    name,
    nadNamespace,
    namespaces,
  }: { name: string; nadNamespace: string; namespaces?: readonly string[] | undefined },
  pools: readonly EvaluatedPool[],
): AdminOverride | undefined {
  const admins = pools.filter((pool) => pool.nadNamespace === undefined && isServingNamespace(pool, nadNamespace));
  const winner = admins.find(({ state }) => state.kind === 'served') ?? admins[0];
  if (winner === undefined) return undefined;
  const isTaken = (namespace: string) =>
    pools.some((pool) => pool.nadNamespace === undefined && isServingNamespace(pool, namespace));
  const isWhole = admins.some((admin) => admin.namespaces === undefined) || namespaces?.every(isTaken) === true;
  const message =
    `AddressPool ${name} serves nobody${isWhole ? '' : ` of namespace ${nadNamespace}`}: AddressPool ${winner.name} of an administrator ` +
    `is for network ${winner.network}, too, and wins. What is leased stays; to have the addresses of the NAD, delete that pool, ` +
    `or give it spec.namespaces without ${nadNamespace}`;
  return { isComplete: isWhole, message };
}
