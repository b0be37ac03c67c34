import type { IPAMClaim } from '../../api/ipam-claim.js';
import type { AllocationRefusal } from '../core/index.js';
import type { Pool } from '../core/pool.js';
import { isPoolExhausted } from './apply.js';
import type { ClaimMetrics } from './metrics.js';
import type { ClaimWaitList } from './wait-list.js';

export interface ClaimWaitDependencies {
  waitList: Pick<ClaimWaitList, 'set' | 'remove' | 'size'>;
  metrics: Pick<ClaimMetrics, 'setWaiting'>;
}

/** Queues a claim for the addresses that it was refused. */
export function startWaiting(
  key: string,
  { claim, pool, refusals }: { claim: IPAMClaim; pool: Pool; refusals: readonly AllocationRefusal[] },
  { waitList, metrics }: ClaimWaitDependencies,
): void {
  waitList.set(key, {
    created: claim.metadata.creationTimestamp ?? '',
    ...(refusals.some(isPoolExhausted) && { pool }),
    addresses: refusals.flatMap(({ address }) => (address ? [{ addressSpace: pool.addressSpace, address }] : [])),
  });
  metrics.setWaiting(waitList.size);
}

export function stopWaiting(key: string, { waitList, metrics }: ClaimWaitDependencies): void {
  waitList.remove(key);
  metrics.setWaiting(waitList.size);
}
