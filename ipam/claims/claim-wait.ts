import type { IPAMClaim } from '../../api/ipam-claim.js';
import type { Pool } from '../../addressing/pool/pool.js';
import { isPoolExhausted } from './apply.js';
import type { ClaimMetrics } from './metrics.js';
import type { Findings } from './plan.js';
import type { ClaimWaitList } from './wait-list.js';

export interface ClaimWaitDependencies {
  waitList: Pick<ClaimWaitList, 'set' | 'remove' | 'size'>;
  metrics: Pick<ClaimMetrics, 'setWaiting'>;
}

/** Queues a claim for the addresses that it was refused. */
export function startWaiting(
  key: string,
  { claim, pool, need, move, drain }: { claim: IPAMClaim; pool: Pool } & Pick<Findings, 'need' | 'move' | 'drain'>,
  { waitList, metrics }: ClaimWaitDependencies,
): void {
  const refusals = [need, move].filter((refusal) => refusal !== undefined);
  const lacksAny = refusals.some(isPoolExhausted);
  const isDraining = !lacksAny && drain !== undefined && isPoolExhausted(drain);
  waitList.set(key, {
    created: claim.metadata.creationTimestamp ?? '',
    ...((lacksAny || isDraining) && { pool }),
    ...(isDraining && { isDraining }),
    addresses: refusals.flatMap(({ address }) => (address ? [{ addressSpace: pool.addressSpace, address }] : [])),
  });
  metrics.setWaiting(waitList.size);
}

export function stopWaiting(key: string, { waitList, metrics }: ClaimWaitDependencies): void {
  waitList.remove(key);
  metrics.setWaiting(waitList.size);
}
