import { type AddressPool, addressSpaceOf } from '../../api/address-pool.js';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import { type BlockRecord, readBlock } from '../../addressing/block/block.js';
import { type LeaseRecord, readLease } from '../../addressing/lease/lease.js';
import type { Client } from '../../kube/client.js';
import { ADDRESS_BLOCKS, ADDRESS_LEASES, ADDRESS_POOLS, IPAM_CLAIMS } from '../../kube/resources.js';
import { INSTALL_HOLDFAST, readList, required, valueOr } from '../reader.js';

/** Leases and blocks, parsed. Objects that Holdfast cannot have made are left out: they lock nothing. */
export interface Usage {
  readonly leases: readonly LeaseRecord[];
  readonly blocks: readonly BlockRecord[];
}

type ListClient = Pick<Client, 'list' | 'listAs'>;

/** Reads all pools, with leases and blocks. @throws {CommandError} if Holdfast is not installed */
export async function readAllUsage(client: ListClient): Promise<Usage & { pools: readonly AddressPool[] }> {
  const pools = required(await readList(client, ADDRESS_POOLS), INSTALL_HOLDFAST);
  return { pools, ...(await readUsage(client, undefined)) };
}

/** Reads the leases of the address space of a pool, and the blocks. */
export function readPoolUsage(client: ListClient, pool: AddressPool): Promise<Usage> {
  return readUsage(client, `spec.addressSpace=${addressSpaceOf(pool)}`);
}

/** Reads all claims; undefined if the user may not list them in all namespaces. */
export async function readClaims(client: Pick<Client, 'list'>): Promise<readonly IPAMClaim[] | undefined> {
  return valueOr(await readList(client, IPAM_CLAIMS), { forbidden: undefined });
}

async function readUsage(client: ListClient, fieldSelector: string | undefined): Promise<Usage> {
  const [leases, blocks] = await Promise.all([
    client.listAs(ADDRESS_LEASES, (lease) => parsed(readLease, lease), { fieldSelector }),
    client.listAs(ADDRESS_BLOCKS, (block) => parsed(readBlock, block)),
  ]);
  return { leases: leases.items.flatMap((each) => each ?? []), blocks: blocks.items.flatMap((each) => each ?? []) };
}

function parsed<T, R>(parse: (object: T) => R, object: T): R | undefined {
  try {
    return parse(object);
  } catch (error) {
    if (error instanceof TypeError) return undefined;
    throw error;
  }
}
