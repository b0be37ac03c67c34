import { claimMacOf } from '../../api/ipam-claim.js';
import type { AllocationRequest } from '../core/index.js';
import { leaseOwnerOf } from '../core/lease-owner.js';
import { readShownAddresses } from './claim-addresses.js';
import type { ClaimObservation } from './observe.js';
import type { ClaimStep } from './step.js';

/** Returns what a claim asks of its pool. It may keep the addresses that it shows or runs with, although they are draining. */
export function allocationRequestOf(
  { addresses, families }: Extract<ClaimStep, { kind: 'allocate' }>,
  { claim, running }: Pick<ClaimObservation, 'claim' | 'running'>,
  prefersSticky: boolean,
): AllocationRequest {
  const mac = claimMacOf(claim);
  const shown = readShownAddresses(claim).addresses;
  const isRunning = running.kind === 'addresses';
  return {
    addresses,
    families,
    kept: isRunning ? [...shown, ...running.addresses] : shown,
    owner: leaseOwnerOf(claim),
    ...(mac !== undefined && { mac }),
    prefersSticky,
    ...(isRunning && { launchers: running.launchers }),
  };
}
