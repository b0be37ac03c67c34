import type { LeaseNetworkData } from '../../api/address-lease.js';
import type { ObjectPatch } from '../../api/meta.js';
import type { LeaseRecord } from './lease-record.js';
import { patchLease, stateOf } from './lease.js';

/** The lock of an address that a Secret with network data may hold: the lease does not expire, and no other VM gets it. */

/** Returns what keeps a released address from others, for example `kept until the process guest has removed it from Secret vms/net`. */
export function describeLock({ namespace, secret }: Pick<LeaseNetworkData, 'namespace' | 'secret'>): string {
  return `kept until the process guest has removed it from Secret ${namespace}/${secret}`;
}

/**
 * Locks the address, before it is written into the Secret.
 * @throws {TypeError} if the lease is not held
 */
export function lockForNetworkData(record: LeaseRecord, networkData: LeaseNetworkData): ObjectPatch {
  const state = stateOf(record);
  if (state !== 'held') throw new TypeError(`AddressLease ${record.metadata.name} is ${state}: no Secret may hold it`);
  return patchLease(record, { spec: { networkData } });
}

/** Unlocks the address, after it was removed from the Secret. Its cool-down begins then. */
export function unlockFromNetworkData(record: LeaseRecord): ObjectPatch {
  return patchLease(record, { spec: { networkData: null } });
}
