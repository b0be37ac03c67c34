import type { ReasonOf } from '../../api/conditions.js';
import { isBeingDeleted } from '../../api/meta.js';
import { type Address, formatAddress, sameAddress } from '../../addressing/address/address.js';
import type { AllocationRefusal } from '../../addressing/allocator/allocator.js';
import type { LeaseRecord } from '../../addressing/lease/lease.js';
import { isDraining } from '../../addressing/pool/pool.js';
import { namespaceRefusal } from '../../addressing/directory/resolution.js';
import { conditionMessage } from './reports/condition-message.js';
import type { ClaimObservation } from './observe.js';
import type { ConditionOf } from '../../cluster/claim-conditions.js';

/** True if the claim has the address in a draining range of the pool that serves it. */
export function isDrainingFor({ resolution }: Pick<ClaimObservation, 'resolution'>, address: Address): boolean {
  return resolution.kind === 'served' && isDraining(resolution.pool, address);
}

/** Returns the lease that replaces a draining address: one of its family that the claim holds already. */
export function replacementOf(
  address: Address,
  { held, resolution }: Pick<ClaimObservation, 'held' | 'resolution'>,
): LeaseRecord | undefined {
  if (resolution.kind !== 'served') return undefined;
  const { pool } = resolution;
  return held.find(
    (lease) => lease.address.family === address.family && lease.pool === pool.name && !isDraining(pool, lease.address),
  );
}

/** The addresses of draining ranges that a claim keeps for now. */
export interface DrainingAddresses {
  readonly draining: readonly Address[];
  readonly requested: readonly Address[];
  /** No pod uses the claim, so its addresses may change. */
  readonly isMovable: boolean;
}

/** Returns the draining addresses that another address may replace now. */
export function replaceableAddresses(
  { claim, resolution }: Pick<ClaimObservation, 'claim' | 'resolution'>,
  { draining, requested, isMovable }: DrainingAddresses,
): readonly Address[] {
  if (!isMovable || resolution.kind !== 'served' || namespaceRefusal(claim, resolution.pool) !== undefined) return [];
  return draining.filter((address) => !requested.some((each) => sameAddress(each, address)));
}

/** Says why the claim keeps an address of a draining range. @param refusal why it cannot get another one */
export function drainingConditionOf(
  { claim, pods, resolution }: ClaimObservation,
  { draining, requested, isMovable }: DrainingAddresses,
  refusal: AllocationRefusal | undefined,
): ConditionOf<'AddressDraining'> | undefined {
  const [address] = draining;
  if (address === undefined || resolution.kind !== 'served' || isBeingDeleted(claim)) return undefined;
  const subject = `${draining.map(formatAddress).join(', ')} is in a draining range of pool ${resolution.pool.name}`;
  const condition = (reason: ReasonOf<'AddressDraining'>, message: string) =>
    ({ status: 'True', reason, message }) as const;
  const wanted = requested.find((each) => draining.some((other) => sameAddress(each, other)));
  if (wanted !== undefined) {
    const remedy = 'request an address outside of it, or remove the request';
    return condition('AddressRequested', `${subject}, and the VM requests ${formatAddress(wanted)}: ${remedy}`);
  }
  if (!isMovable) {
    const pod = pods[0]?.metadata.name ?? '';
    return condition('ClaimInUse', `${subject}, and pod ${pod} uses it: restart the VM to change its address`);
  }
  const closed = namespaceRefusal(claim, resolution.pool);
  if (closed === undefined && refusal === undefined) return undefined;
  const why = closed ?? 'it has no other address for the claim now: add a range to the pool';
  return condition('NoOtherAddress', `${subject}. ${conditionMessage(why)}`);
}
