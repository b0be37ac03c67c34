import type { AddressLease, AddressLeaseSpec, LeaseOwner } from '../api/address-lease.js';
import { parseLeaseMac } from '../api/mac-address.js';
import { ADDRESS_LEASE_KIND, IPAM_API_VERSION } from '../api/names.js';
import { type Address, AddressError, formatAddress, parseAddress } from '../ipam/core/address.js';
import { formatCidr } from '../ipam/core/cidr.js';
import { leaseLabels } from '../ipam/core/lease-labels.js';
import { leaseName } from '../ipam/core/lease-name.js';
import { isReservation, readLease, stateOf } from '../ipam/core/lease.js';
import { type Pool, compilePool, subnetOf } from '../ipam/core/pool.js';
import { findUnlessGone } from '../kube/absence.js';
import type { Client } from '../kube/client.js';
import { isAlreadyExists } from '../kube/errors.js';
import { ADDRESS_LEASES, ADDRESS_POOLS } from '../kube/resources.js';
import { INSTALL_HOLDFAST, requireKind } from './required-kind.js';
import { CommandError } from './command-error.js';

/** Of Ethernet. What is longer is no Ethernet's, and begins with other bits. */
const MULTICAST_MAC = /^.[13579bdf](:..){5}$/;

export interface Reservation {
  /** The AddressPool's name. */
  readonly pool: string;
  readonly address: string;
  /** Whom it is for; without it: nobody. */
  readonly mac?: string;
}

/** Looks at the words alone. @throws {CommandError} where they are no address, or no MAC address */
export function checkReservation({ address, mac }: Reservation): void {
  parseAddressArgument(address);
  parseMacArgument(mac);
}

/**
 * Makes the lease that keeps an address for a MAC address, or from everybody.
 * @returns what was done, in words
 * @throws {CommandError} where it cannot be
 */
export async function reserve(wanted: Reservation, client: Pick<Client, 'get' | 'list' | 'create'>): Promise<string> {
  const mac = parseMacArgument(wanted.mac);
  const { pool, address } = await findPoolAndAddress(wanted, client);
  const subnet = subnetOf(pool, address);
  const text = formatAddress(address);
  if (subnet === undefined) {
    const cidrs = pool.subnets.map(({ cidr }) => formatCidr(cidr)).join(', ');
    throw new CommandError(`${text} is not in AddressPool ${pool.name}, which has ${cidrs}`);
  }
  if (!subnet.requestable.has(address.value)) {
    throw new CommandError(
      `AddressPool ${pool.name} leases ${text} to nobody: it is excluded, the gateway, or outside of its ranges`,
    );
  }
  const lease = reservationOf(pool, address, mac);
  const { name } = lease.metadata;
  await refuseSecondReservation(lease, client);
  try {
    await client.create(ADDRESS_LEASES, lease);
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
    return compareExisting(lease, await client.get(ADDRESS_LEASES, { name }));
  }
  return `addresslease.ipam.holdfast.dev/${name} reserved`;
}

/** Of two addresses that are reserved for it a workload would have one, and nothing says which. */
async function refuseSecondReservation({ metadata, spec }: AddressLease, client: Pick<Client, 'list'>): Promise<void> {
  const { pool, addressSpace, mac } = spec;
  if (mac === undefined) return;
  const { items } = await client.list(ADDRESS_LEASES, {
    fieldSelector: `spec.mac=${mac},spec.pool=${pool},spec.addressSpace=${addressSpace}`,
  });
  // whether it is the same is seen when it is made
  if (items.some(({ metadata: { name } }) => name === metadata.name)) return;
  const { family } = parseAddress(spec.address);
  const other = items.map(readLease).find((lease) => isReservation(lease) && lease.address.family === family);
  if (other === undefined) return;
  const there = formatAddress(other.address);
  throw new CommandError(
    `AddressPool ${pool} keeps ${there} for ${mac} already, and a MAC address gets one IPv${family} address of a pool: kubectl holdfast unreserve ${pool} ${there} first`,
  );
}

/**
 * Deletes such a lease.
 * @throws {CommandError} where there is none, it is of another pool, or somebody has the address
 */
export async function unreserve(wanted: Reservation, client: Pick<Client, 'get' | 'delete'>): Promise<string> {
  const { pool, address } = await findPoolAndAddress(wanted, client);
  const name = leaseName(pool.addressSpace, address);
  const found = await findUnlessGone(client, ADDRESS_LEASES, { name });
  if (found === undefined) throw new CommandError(`there is no AddressLease ${name}: the address is not reserved`);
  const record = readLease(found);
  const { owner } = record;
  const text = formatAddress(address);
  if (owner !== undefined && !isReservation(record)) {
    const rest = stateOf(record) === 'held' ? '' : ', and cools down';
    throw new CommandError(
      `${text} is not reserved but leased to ${describeLeaseOwner(owner)}${rest}: there is nothing to unreserve`,
    );
  }
  if (record.pool !== pool.name) {
    throw new CommandError(
      `AddressLease ${name} reserves ${text} for AddressPool ${record.pool}, not for ${pool.name}: if it is wrong, kubectl delete alease ${name}`,
    );
  }
  if (owner !== undefined) {
    const state = stateOf(record) === 'held' ? 'has' : 'had';
    throw new CommandError(
      `${describeLeaseOwner(owner)} ${state} ${text}: it is no reservation now; try again once that is over`,
    );
  }
  const { uid, resourceVersion } = record.metadata;
  await client.delete(ADDRESS_LEASES, { name }, { uid, resourceVersion });
  return `addresslease.ipam.holdfast.dev/${name} deleted: the address is free`;
}

async function findPoolAndAddress(
  { pool: name, address: text }: Reservation,
  client: Pick<Client, 'get'>,
): Promise<{ pool: Pool; address: Address }> {
  const address = parseAddressArgument(text);
  const object = await requireKind(ADDRESS_POOLS, INSTALL_HOLDFAST, () =>
    findUnlessGone(client, ADDRESS_POOLS, { name }),
  );
  if (object === undefined) throw new CommandError(`there is no AddressPool ${name}: kubectl get apools lists them`);
  const compiled = compilePool(object);
  if (compiled.ok) return { pool: compiled.pool, address };
  const problems = compiled.problems.map(({ field, message }) => `${field} ${message}`).join('; ');
  throw new CommandError(`AddressPool ${name} is invalid: ${problems}`);
}

function parseAddressArgument(text: string): Address {
  try {
    return parseAddress(text);
  } catch (error) {
    if (error instanceof AddressError) throw new CommandError(error.message);
    throw error;
  }
}

function parseMacArgument(mac: string | undefined): string | undefined {
  if (mac === undefined) return undefined;
  const parsed = parseLeaseMac(mac);
  if (parsed === undefined) throw new CommandError(`"${mac}" is no MAC address: write it like 02:00:00:00:00:01`);
  if (!MULTICAST_MAC.test(parsed)) return parsed;
  throw new CommandError(`${mac} is the address of a group, for its first byte is odd: give the one of the interface`);
}

/** The lease that keeps an address of the pool for a MAC address, or from everybody. */
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

function describeLeaseOwner({ kind, namespace, name }: LeaseOwner): string {
  return `${kind} ${namespace}/${name}`;
}

/** What is there already is fine where it is the same. */
function compareExisting(wanted: AddressLease, found: AddressLease): string {
  const { name } = wanted.metadata;
  const { owner, pool, mac } = found.spec;
  if (owner !== undefined) {
    throw new CommandError(
      `${wanted.spec.address} is leased to ${describeLeaseOwner(owner)}${found.spec.releasedAt === undefined ? '' : ', and cools down'}: look at AddressLease ${name}`,
    );
  }
  if (pool === wanted.spec.pool && mac === wanted.spec.mac) return `addresslease.ipam.holdfast.dev/${name} unchanged`;
  throw new CommandError(
    `${wanted.spec.address} is reserved otherwise: for ${mac ?? 'nobody'}, from AddressPool ${pool}: delete AddressLease ${name} first`,
  );
}
