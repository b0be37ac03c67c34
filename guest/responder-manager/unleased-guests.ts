import { IPS_ALLOCATED } from '../../api/names.js';
import { conditionOf } from '../../cluster/claim-conditions.js';
import { formatAddress } from '../../addressing/address/address.js';
import { leaseName } from '../../addressing/lease/lease-name.js';
import { type LeaseRecord, readLease } from '../../addressing/lease/lease.js';
import type { Client } from '../../kube/client.js';
import { forEachParallel } from '../../kube/run-in-slices.js';
import { ADDRESS_LEASES } from '../../kube/resources.js';
import { leasedAddresses, shownAddresses } from '../leased-addresses.js';
import type { ServedGuest } from '../running-guests.js';

/** A guest with addresses that responders leave out, because they are not leased to its claim. */
interface UnleasedGuest {
  readonly claim: ServedGuest['claim'];
  readonly reason: 'AddressNotLeased';
  readonly message: string;
}

/** Guests whose leases are read in one pass. More claims lose their leases only if somebody deletes all of them. */
const MAX_GUESTS = 256;
const CONCURRENT_READS = 8;

/**
 * Finds the guests that responders do not answer for all addresses of their claims. Reads leases live, but only those of claims that ipam refuses: the
 * condition IPsAllocated is False while a claim lacks a lease, and its change wakes this process.
 */
export async function findUnleasedGuests(
  guests: readonly ServedGuest[],
  client: Pick<Client, 'find'>,
  signal: AbortSignal,
): Promise<UnleasedGuest[]> {
  const refused = guests.filter(({ claim }) => conditionOf(claim, IPS_ALLOCATED)?.status === 'False');
  const found: UnleasedGuest[] = [];
  const failures: unknown[] = [];
  await forEachParallel(refused.slice(0, MAX_GUESTS), CONCURRENT_READS, async (guest) => {
    try {
      const lacked = await lackedAddresses(guest, client, signal);
      if (lacked.length > 0) found.push({ claim: guest.claim, reason: 'AddressNotLeased', message: messageOf(lacked) });
    } catch (error) {
      failures.push(error);
    }
  });
  if (failures.length > 0) throw failures[0];
  return found;
}

async function lackedAddresses(
  { claim, pool }: ServedGuest,
  client: Pick<Client, 'find'>,
  signal: AbortSignal,
): Promise<string[]> {
  const shown = shownAddresses(claim) ?? [];
  const leases = new Map<string, LeaseRecord>();
  for (const address of shown) {
    const name = leaseName(pool.addressSpace, address);
    const lease = await client.find(ADDRESS_LEASES, { name }, { signal, tenant: claim.metadata.namespace ?? '' });
    if (lease !== undefined) leases.set(name, readLease(lease));
  }
  const leased = leasedAddresses(claim, pool, leases).map(formatAddress);
  return shown.map(formatAddress).filter((address) => !leased.includes(address));
}

function messageOf(lacked: readonly string[]): string {
  return `Responders do not tell the guest ${lacked.join(' and ')}, because ${lacked.length > 1 ? 'they are' : 'it is'} not leased to the claim: see its condition ${IPS_ALLOCATED}`;
}
