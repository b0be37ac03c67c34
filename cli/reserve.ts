import { type AddressLease, type AddressLeaseSpec, describeLeaseOwner } from '../api/address-lease.js';
import { addressSpaceOf } from '../api/address-pool.js';
import type { IPAMClaim } from '../api/ipam-claim.js';
import { parseLeaseMac } from '../api/mac-address.js';
import { objectKey } from '../api/meta.js';
import { ADDRESS_LEASE_KIND, IPAM_API_VERSION } from '../api/names.js';
import {
  type Address,
  AddressError,
  formatAddress,
  parseAddress,
  requireUnmapped,
} from '../addressing/address/address.js';
import { formatCidr } from '../addressing/address/cidr.js';
import { leaseLabels } from '../addressing/lease/lease-record.js';
import { leaseName } from '../addressing/lease/lease-name.js';
import { isReservation, readLease, stateOf, type LeaseRecord } from '../addressing/lease/lease.js';
import { type Pool, subnetOf } from '../addressing/pool/pool.js';
import { notLeasableSubject } from '../addressing/allocator/refusal-messages.js';
import { findUnlessGone } from '../kube/absence.js';
import type { Client } from '../kube/client.js';
import { isAlreadyExists } from '../kube/errors.js';
import { ADDRESS_LEASES, ADDRESS_POOLS, IPAM_CLAIMS } from '../kube/resources.js';
import { CommandError } from './exit-code.js';
import { findPool, requireValidPool } from './find-pool.js';
import { readListAs, valueOr } from './reader.js';
import { claimAddressesOf } from './trace/claims.js';
import { namespacesOf } from './usage/pools.js';

/** Ethernet only: longer addresses of other link layers begin differently. */
const MULTICAST_MAC = /^.[13579bdf](:..){5}$/;

export interface Reservation {
  /** The AddressPool's name. */
  readonly pool: string;
  readonly address: string;
  /** The interface that gets the address; absent: none. */
  readonly mac?: string;
}

/** Checks the text of the arguments. @throws {CommandError} if it is not an address, or not a MAC address */
export function checkReservation({ address, mac }: Reservation): void {
  parseAddressArgument(address);
  parseMacArgument(mac);
}

/**
 * Creates the lease that reserves an address for a MAC address, or for no workload at all.
 * @returns a line for the user
 * @throws {CommandError} if the address cannot be reserved
 */
export async function reserve(
  wanted: Reservation,
  client: Pick<Client, 'get' | 'list' | 'listAs' | 'create'>,
): Promise<string> {
  const mac = parseMacArgument(wanted.mac);
  const { pool, address } = await findPoolAndAddress(wanted, client);
  const subnet = subnetOf(pool, address);
  const text = formatAddress(address);
  if (subnet === undefined) {
    const cidrs = pool.subnets.map(({ cidr }) => formatCidr(cidr)).join(', ');
    throw new CommandError(`address ${text} is in no subnet of AddressPool ${pool.name} (${cidrs})`);
  }
  if (!subnet.requestable.has(address.value)) {
    throw new CommandError(`${notLeasableSubject(address, subnet, pool)}: no workload can lease it`);
  }
  const lease = reservationOf(pool, address, mac);
  const { name } = lease.metadata;
  await refuseSecondReservation(lease, client);
  const found = await findUnlessGone(client, ADDRESS_LEASES, { name });
  if (found !== undefined) return compareExisting(lease, found);
  await refuseShownAddress(lease, client);
  try {
    await client.create(ADDRESS_LEASES, lease);
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
    return compareExisting(lease, await client.get(ADDRESS_LEASES, { name }));
  }
  return `addresslease.ipam.holdfast.dev/${name} reserved`;
}

/** Refuses a second reservation for one MAC address: a workload gets only one of them, and nothing determines which. */
async function refuseSecondReservation({ metadata, spec }: AddressLease, client: Pick<Client, 'list'>): Promise<void> {
  const { pool, addressSpace, mac } = spec;
  if (mac === undefined) return;
  const { items } = await client.list(ADDRESS_LEASES, {
    fieldSelector: `spec.mac=${mac},spec.pool=${pool},spec.addressSpace=${addressSpace}`,
  });
  // creating the lease shows whether it is the same reservation
  if (items.some(({ metadata: { name } }) => name === metadata.name)) return;
  const { family } = parseAddress(spec.address);
  const other = items.map(readLease).find((lease) => isReservation(lease) && lease.address.family === family);
  if (other === undefined) return;
  const reserved = formatAddress(other.address);
  throw new CommandError(
    `AddressPool ${pool} already reserves ${reserved} for ${mac}, and a MAC address gets one IPv${family} address of a pool: run kubectl holdfast unreserve ${pool} ${reserved} first`,
  );
}

/** Refuses an address of a claim whose lease was lost: its VM may run with the address. */
async function refuseShownAddress({ spec }: AddressLease, client: Pick<Client, 'list' | 'listAs'>): Promise<void> {
  const { items } = await client.list(ADDRESS_POOLS);
  const pools = items.filter((pool) => addressSpaceOf(pool) === spec.addressSpace);
  const isServed = ({ metadata: { namespace = '' }, spec: { network } }: IPAMClaim) =>
    pools.some((pool) => pool.spec.network === network && namespacesOf(pool)?.includes(namespace) !== false);
  const read = await readListAs(client, IPAM_CLAIMS, (claim) =>
    claimAddressesOf(claim).includes(spec.address) && isServed(claim) ? [objectKey(claim)] : [],
  );
  const [claim] = valueOr(read, { unserved: [] });
  if (claim === undefined) return;
  throw new CommandError(
    `IPAMClaim ${claim} has ${spec.address} in its status, and no lease for it: ipam leases it to the claim again. Reserve another address, or delete the VM of the claim first`,
  );
}

/**
 * Deletes the lease of a reservation.
 * @throws {CommandError} if there is none, it belongs to another pool, or its address is in use
 */
export async function unreserve(wanted: Reservation, client: Pick<Client, 'get' | 'list' | 'delete'>): Promise<string> {
  const { pool, address } = await findPoolAndAddress(wanted, client);
  const name = leaseName(pool.addressSpace, address);
  const found = await findUnlessGone(client, ADDRESS_LEASES, { name });
  if (found === undefined) throw new CommandError(`AddressLease ${name} does not exist: the address is not reserved`);
  const record = readLease(found);
  const refusal = unreserveRefusal(record, pool.name);
  if (refusal !== undefined) throw new CommandError(refusal);
  const { uid, resourceVersion } = record.metadata;
  await client.delete(ADDRESS_LEASES, { name }, { uid, resourceVersion });
  return `addresslease.ipam.holdfast.dev/${name} deleted: the address is free`;
}

function unreserveRefusal(record: LeaseRecord, pool: string): string | undefined {
  const { metadata, owner, quarantine } = record;
  const text = formatAddress(record.address);
  const isHeld = stateOf(record) === 'held';
  const remove = `run kubectl delete alease ${metadata.name}`;
  if (quarantine !== undefined)
    return `${text} is not reserved but quarantined, because ${quarantine.mac} has it: to free it, ${remove}`;
  if (owner !== undefined && !isReservation(record))
    return `${text} is not reserved but leased to ${describeLeaseOwner(owner)}${isHeld ? '' : ', and cools down'}: there is nothing to unreserve`;
  if (record.pool !== pool)
    return `AddressLease ${metadata.name} reserves ${text} for AddressPool ${record.pool}, not for ${pool}: if that is wrong, ${remove}`;
  if (owner === undefined) return undefined;
  return `${describeLeaseOwner(owner)} ${isHeld ? 'has' : 'had'} ${text} through this reservation: try again when the address is free`;
}

async function findPoolAndAddress(
  { pool: name, address: text }: Reservation,
  client: Pick<Client, 'get' | 'list'>,
): Promise<{ pool: Pool; address: Address }> {
  const address = parseAddressArgument(text);
  return { pool: requireValidPool(await findPool(name, client)), address };
}

function parseAddressArgument(text: string): Address {
  try {
    return requireUnmapped(parseAddress(text));
  } catch (error) {
    if (error instanceof AddressError) throw new CommandError(error.message);
    throw error;
  }
}

function parseMacArgument(mac: string | undefined): string | undefined {
  if (mac === undefined) return undefined;
  const parsed = parseLeaseMac(mac);
  if (parsed === undefined) throw new CommandError(`"${mac}" is not a MAC address: write one like 02:00:00:00:00:01`);
  if (!MULTICAST_MAC.test(parsed)) return parsed;
  throw new CommandError(
    `${mac} is a multicast MAC address (its first byte is odd): give the MAC address of an interface`,
  );
}

/** Builds the lease that reserves an address of the pool for a MAC address, or for no workload at all. */
export function reservationOf(pool: Pool, address: Address, mac?: string): AddressLease {
  const spec: AddressLeaseSpec = {
    address: formatAddress(address),
    addressSpace: pool.addressSpace,
    pool: pool.name,
    ...(mac !== undefined && { mac }),
  };
  const metadata = { name: leaseName(pool.addressSpace, address), labels: leaseLabels(spec) };
  return { apiVersion: IPAM_API_VERSION, kind: ADDRESS_LEASE_KIND, metadata, spec };
}

/** Accepts an existing reservation if it is the same. */
function compareExisting(wanted: AddressLease, found: AddressLease): string {
  const { name } = wanted.metadata;
  const { owner, pool, mac, quarantine } = found.spec;
  const rest = found.spec.releasedAt === undefined ? '' : ', and cools down';
  const problem =
    quarantine !== undefined
      ? `is quarantined, because ${quarantine.mac} has it: remove that host, and delete AddressLease ${name} first`
      : owner !== undefined
        ? `is leased to ${describeLeaseOwner(owner)}${rest}: see AddressLease ${name}`
        : `has another reservation, ${mac === undefined ? 'without a MAC address' : `for ${mac}`} in AddressPool ${pool}: delete AddressLease ${name} first`;
  const isSame = (owner ?? quarantine) === undefined && pool === wanted.spec.pool && mac === wanted.spec.mac;
  if (isSame) return `addresslease.ipam.holdfast.dev/${name} unchanged`;
  throw new CommandError(`${wanted.spec.address} ${problem}`);
}
