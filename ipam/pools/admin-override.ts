import { isServingNamespace } from '../../addressing/directory/resolution.js';
import type { EvaluatedPool } from '../../addressing/directory/pool-state.js';

/** An administrator's pool serves users of a derived pool. */
export interface AdminOverride {
  /** Whether the derived pool has no users left. Otherwise it may serve other namespaces through its NADs. */
  readonly isComplete: boolean;
  readonly message: string;
}

/**
 * Returns the administrator's pool that serves the namespace of a derived pool's NADs; undefined if there is none.
 * @param derived its `namespaces` are those that it serves; absent: all
 * @param pools all pools of the network
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
    `AddressPool ${name} serves no workloads${isWhole ? '' : ` of namespace ${nadNamespace}`}: AddressPool ${winner.name}, which an administrator ` +
    `created for network ${winner.network}, takes precedence. Existing leases stay. To use the addresses of the NAD, delete that pool, ` +
    `or set its spec.namespaces without ${nadNamespace}`;
  return { isComplete: isWhole, message };
}
