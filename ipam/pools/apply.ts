import { isHeldOrReserved } from '../../addressing/lease/lease.js';
import type { AddressPool } from '../../api/address-pool.js';
import { labelValue } from '../../api/ipam-claim.js';
import { isRecord } from '../../api/json.js';
import { isBeingDeleted } from '../../api/meta.js';
import { LEASE_POOL, POOL_FINALIZER } from '../../api/names.js';
import type { CallOptions, Client } from '../../kube/client.js';
import { ADDRESS_LEASES, ADDRESS_POOLS } from '../../kube/resources.js';
import type { DerivationAction } from './derivation.js';

/** Every write has the version that the decision was based on as its precondition, so a deposed leader is harmless. */

export async function applyDerivation(
  action: DerivationAction,
  client: Pick<Client, 'create' | 'patch' | 'delete'>,
  call: CallOptions,
): Promise<void> {
  switch (action.kind) {
    case 'create':
      await client.create(ADDRESS_POOLS, action.pool, call);
      return;
    case 'update': {
      await patch(action.pool, { spec: createMergePatch(action.pool.spec, action.spec) }, client, call);
      return;
    }
    case 'delete': {
      const { name, uid, resourceVersion } = action.pool.metadata;
      await client.delete(ADDRESS_POOLS, { name }, { ...call, uid, resourceVersion });
      return;
    }
  }
}

/** @returns the pool with its newest resourceVersion */
export async function addFinalizer(
  pool: AddressPool,
  client: Pick<Client, 'patch'>,
  call: CallOptions,
): Promise<AddressPool> {
  if (isBeingDeleted(pool) || hasFinalizer(pool)) return pool;
  const finalizers = [...(pool.metadata.finalizers ?? []), POOL_FINALIZER];
  const { metadata } = await patch(pool, { metadata: { finalizers } }, client, call);
  return { ...pool, metadata };
}

export async function removeFinalizer(
  pool: AddressPool,
  client: Pick<Client, 'patch'>,
  call: CallOptions,
): Promise<void> {
  if (!hasFinalizer(pool)) return;
  const finalizers = (pool.metadata.finalizers ?? []).filter((finalizer) => finalizer !== POOL_FINALIZER);
  await patch(pool, { metadata: { finalizers } }, client, call);
}

/**
 * Lists the leases of the pool live. Returns true if none of them keeps the pool from being deleted.
 * @param moves a pool of the same name will serve another address space: then released and quarantined leases keep this one, too
 */
export async function isUnused(
  pool: AddressPool,
  client: Pick<Client, 'listAs'>,
  { moves, ...call }: CallOptions & { moves: boolean },
): Promise<boolean> {
  const labelSelector = `${LEASE_POOL}=${labelValue(pool.metadata.name)}`;
  const { items } = await client.listAs(ADDRESS_LEASES, ({ spec }) => moves || isHeldOrReserved(spec), {
    labelSelector,
    ...call,
  });
  return !items.includes(true);
}

function hasFinalizer({ metadata }: AddressPool): boolean {
  return metadata.finalizers?.includes(POOL_FINALIZER) ?? false;
}

async function patch(
  { metadata: { name, uid, resourceVersion } }: AddressPool,
  changes: { metadata?: object; spec?: object },
  client: Pick<Client, 'patch'>,
  call: CallOptions,
): Promise<AddressPool> {
  const body = { ...changes, metadata: { uid, resourceVersion, ...changes.metadata } };
  return client.patch(ADDRESS_POOLS, { name }, { type: 'merge', body }, call);
}

/** Creates the merge patch (RFC 7386) that turns one JSON object into another. Keys that are gone become null, at any depth. */
export function createMergePatch(before: object, after: object): Record<string, unknown> {
  const gone = Object.keys(before).filter((key) => (after as Record<string, unknown>)[key] === undefined);
  const patch: Record<string, unknown> = Object.fromEntries(gone.map((key) => [key, null]));
  for (const [key, value] of Object.entries(after)) {
    if (value === undefined) continue;
    const known = (before as Record<string, unknown>)[key];
    patch[key] = isRecord(value) && isRecord(known) ? createMergePatch(known, value) : (value as unknown);
  }
  return patch;
}
