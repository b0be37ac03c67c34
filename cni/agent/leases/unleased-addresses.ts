import type { Address } from '../../../addressing/address/address.js';
import type { SpaceCandidates } from './space-candidates.js';

/** As many requests for leases as the transport sends at once. */
export const MAX_READS_AT_ONCE = 8;

export interface UnleasedAddressDeps {
  readonly candidates: Pick<SpaceCandidates, 'settle' | 'keepUnleased'>;
  /** Picks a candidate, whose attempt ends here or later. */
  readonly pick: () => Address | undefined;
  /** Whether the address may still be picked after the reads. */
  readonly isPickable: (address: Address) => boolean;
  /** Reads live whether the address has a lease. */
  readonly isLeased: (address: Address) => Promise<boolean>;
}

/** `taken`: the candidates that have leases. */
export interface UnleasedAddress {
  /** Its attempt is still under way; undefined: none was found. */
  readonly address?: Address;
  readonly taken: number;
  readonly picked: number;
}

/**
 * Reads the leases of several candidates at once: a read costs the API server a fraction of a create that fails. Of those without a lease, the
 * first is returned and the others are kept for the next ADDs.
 * @param limit of candidates
 * @throws {Error} if a read failed and no address was found
 */
export async function findUnleasedAddress(deps: UnleasedAddressDeps, limit: number): Promise<UnleasedAddress> {
  const { candidates, isPickable, isLeased } = deps;
  const picked = pickMany(deps, Math.min(limit, MAX_READS_AT_ONCE));
  const reads = await Promise.allSettled(picked.map(isLeased));
  const isTaken = (n: number) => reads[n]?.status === 'fulfilled' && reads[n].value;
  const unleased = picked.filter(
    (address, n) => reads[n]?.status === 'fulfilled' && !isTaken(n) && isPickable(address),
  );
  const [found, ...others] = unleased;
  for (const [n, address] of picked.entries()) if (!unleased.includes(address)) candidates.settle(address, isTaken(n));
  for (const address of others) candidates.keepUnleased(address);
  const failed = reads.find((read) => read.status === 'rejected');
  if (found === undefined && failed !== undefined) throw failed.reason;
  const taken = picked.filter((_address, n) => isTaken(n)).length;
  return { ...(found !== undefined && { address: found }), taken, picked: picked.length };
}

function pickMany({ pick }: UnleasedAddressDeps, number: number): Address[] {
  const picked: Address[] = [];
  while (picked.length < number) {
    const address = pick();
    if (address === undefined) break;
    picked.push(address);
  }
  return picked;
}
