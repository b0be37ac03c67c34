import { isDeepStrictEqual } from 'node:util';
import { type AddressPool, addressSpaceOf, nadNamespaceOf } from '../../api/address-pool.js';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import { objectKey } from '../../api/meta.js';
import type { ObjectChange } from '../../kube/informers/informer.js';
import { type ParsedNad, changesNetwork } from '../../cluster/transforms.js';
import { derivedPoolName } from '../../addressing/pool/derived-pool.js';
import { type LeaseRecord, isHeldOrReserved } from '../../addressing/lease/lease.js';
import { affectedPools } from '../../addressing/directory/affected.js';
import type { NetworkChanges, PoolChanges, PoolDirectory } from '../../addressing/directory/directory.js';
import { networkKey } from '../../addressing/directory/resolution.js';
import type { LeaseBook, LeaseChange } from '../leases/lease-book.js';
import type { PoolUsage } from './usage.js';

/** Maps changes to the keys that must be synced: names of pools, and `namespace/network` of NADs. */

export interface ChangeSource<S> {
  onChange(handler: (change: S) => void): void;
}

interface PoolSources extends PoolChanges {
  claims: ChangeSource<ObjectChange<IPAMClaim>>;
  book: Pick<LeaseBook, 'removePool' | 'onChange' | 'onAddressFreed'>;
  /** The keys of claims whose pods changed. */
  pods: ChangeSource<string>;
  directory: PoolDirectory;
  usage: PoolUsage;
  cache: { get(name: string): AddressPool | undefined };
}

/** Keeps the counts up to date, and passes the keys to sync to `add`, which does nothing while another process leads. */
export function followPools(sources: PoolSources, add: (keys: readonly string[]) => void): void {
  const { pools, networks, claims, book, pods, directory, usage, cache } = sources;
  directory.onChange((changes) => add(keysOfNetworks(changes, directory)));
  pools.onChange((change) => {
    if (change.type === 'removed') {
      book.removePool(change.object.metadata.name, addressSpaceOf(change.object));
      usage.forget(change.object.metadata.name);
    }
    add([...keysOfPool(change.object), ...keysOfAdminPool(change, directory)]);
  });
  networks.onChange((change) => changesNetwork(change) && add(keysOfNad(change)));
  book.onChange((change) => add(keysOfLease(change, directory, cache)));
  book.onAddressFreed((space, address) => add(directory.poolsContaining(space, address)));
  pods.onChange((key) => add(usage.updateClaim(key)));
  claims.onChange(({ object }) => add(usage.updateClaim(objectKey(object))));
}

/** Returns whose turn the sync of a key is: of a derived pool, that of the namespace of its NADs. Administrators' pools are one group. */
export function turnsOfPools(pools: PoolSources['cache']): (key: string) => string {
  return (key) => {
    const slash = key.indexOf('/');
    if (slash >= 0) return key.slice(0, slash);
    const pool = pools.get(key);
    // most pools that come and go are those of tenants
    return pool === undefined ? '?' : (nadNamespaceOf(pool) ?? '');
  };
}

function keysOfPool(pool: AddressPool): string[] {
  const namespace = nadNamespaceOf(pool);
  return [pool.metadata.name, ...(namespace === undefined ? [] : [networkKey(namespace, pool.spec.network)])];
}

/** Derived pools, and NADs without one, whose right to the pool's address space may have changed. */
function keysOfAdminPool({ object, before }: ObjectChange<AddressPool>, directory: PoolDirectory): string[] {
  if (nadNamespaceOf(object) !== undefined || isDeepStrictEqual(before?.spec, object.spec)) return [];
  return directory
    .networksIn(addressSpaceOf(object))
    .flatMap(({ namespace, network }) => [networkKey(namespace, network), derivedPoolName(namespace, network)]);
}

/** The networks that the NAD named before and names now. */
function keysOfNad({ object, before }: ObjectChange<ParsedNad>): string[] {
  const keys = [before, object].flatMap((nad) =>
    nad?.config.ok ? [networkKey(nad.metadata.namespace ?? '', nad.config.network.name)] : [],
  );
  return [...new Set(keys)];
}

/** The pools and NADs that a change may concern. */
function keysOfNetworks(changes: NetworkChanges, directory: PoolDirectory): string[] {
  const networks = [...changes].flatMap(([network, namespaces = directory.namespacesOf(network)]) =>
    [...namespaces].map((namespace) => networkKey(namespace, network)),
  );
  return [...affectedPools(changes, directory), ...networks];
}

/** The pool of the lease, other pools with its address and, once it is not held any more, the network whose derived pool may wait for that. */
function keysOfLease({ before, after }: LeaseChange, directory: PoolDirectory, pools: PoolSources['cache']): string[] {
  const lease = after ?? before;
  const keys = new Set([lease.pool]);
  const changesOthers = before === undefined || after === undefined || isInUse(before) !== isInUse(after);
  if (changesOthers) for (const name of directory.poolsContaining(lease.addressSpace, lease.address)) keys.add(name);
  const pool = isInUse(after) ? undefined : pools.get(lease.pool);
  if (pool !== undefined) for (const key of keysOfPool(pool)) keys.add(key);
  return [...keys];
}

function isInUse(lease: LeaseRecord | undefined): boolean {
  return lease !== undefined && isHeldOrReserved(lease);
}

/** The keys of all pools and NADs. */
export function allPoolKeys(
  pools: { list(): readonly AddressPool[] },
  networks: { list(): readonly ParsedNad[] },
): string[] {
  const ofNads = networks.list().flatMap((object) => keysOfNad({ type: 'added', object }));
  return [...new Set([...pools.list().flatMap(keysOfPool), ...ofNads])];
}
