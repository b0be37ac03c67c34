import { describeLeaseOwner } from '../../api/address-lease.js';
import { type Address, type Family, formatAddress, formatFamily, sameAddress } from '../address/address.js';
import { firstOf, formatCidr, lastOf } from '../address/cidr.js';
import { coolingStart } from '../lease/cooling-start.js';
import type { Holder, LeaseRecord, LeaseTimes } from '../lease/lease.js';
import { type Pool, type Subnet, addressesOf, growthRemedy } from '../pool/pool.js';
import type { RangeSet } from '../address/ranges.js';

/** The messages that tell users why an address was not allocated. */

/** How many ranges a message lists. A pool may have hundreds. */
const MAX_RANGES_SHOWN = 3;

export function notInPoolMessage(address: Address, pool: Pool): string {
  const subnets = pool.subnets.map(({ cidr }) => formatCidr(cidr)).join(', ');
  const leasable = addressesOf(pool, address.family, 'requestable');
  const remedy = leasable.isEmpty
    ? `do not request one, the pool has no ${formatFamily(address.family)} addresses`
    : requestOneOf(leasable, address.family);
  return `${formatAddress(address)} is not in pool ${pool.name} (${subnets}): ${remedy}`;
}

/** For an address that is in a subnet of the pool and is never leased. */
export function notLeasableMessage(address: Address, subnet: Subnet, pool: Pool): string {
  const remedy = subnet.requestable.isEmpty
    ? `request an address outside ${formatCidr(subnet.cidr)}, of which no address can be requested`
    : requestOneOf(subnet.requestable, address.family);
  return `${notLeasableSubject(address, subnet, pool)}: ${remedy}`;
}

/** Returns for example `10.0.0.1 is the gateway of pool blue`. */
export function notLeasableSubject(address: Address, subnet: Subnet, pool: Pool): string {
  return `${formatAddress(address)} is ${describeUnleasable(address, subnet)} pool ${pool.name}`;
}

function describeUnleasable(address: Address, { cidr, gateway, leasable, excluded }: Subnet): string {
  if (leasable.has(address.value)) return 'in a draining range of';
  if (gateway !== undefined && sameAddress(address, gateway)) return 'the gateway of';
  const hasNetworkAddress = lastOf(cidr) - firstOf(cidr) > 1n;
  if (hasNetworkAddress && address.value === firstOf(cidr)) {
    return `the ${cidr.family === 4 ? 'network' : 'subnet-router anycast'} address of ${formatCidr(cidr)} in`;
  }
  if (hasNetworkAddress && cidr.family === 4 && address.value === lastOf(cidr)) {
    return `the broadcast address of ${formatCidr(cidr)} in`;
  }
  return excluded.has(address.value) ? 'excluded from' : `outside the ranges of ${formatCidr(cidr)} in`;
}

/** @param reader the owner who reads the message. It names no objects of other namespaces; an administrator finds them in the lease */
export function heldByMessage(
  { address, metadata, quarantine }: LeaseRecord,
  holder: Holder,
  reader: { readonly namespace: string },
): string {
  const text = formatAddress(address);
  if (holder === 'reserved') return `${text} is reserved by AddressLease ${metadata.name}`;
  if (holder === 'quarantined') {
    const mac = quarantine === undefined ? 'another host' : `MAC address ${quarantine.mac}`;
    return `${text} is quarantined by AddressLease ${metadata.name}, because ${mac} has it: remove that host, or request another address`;
  }
  return holder.namespace === reader.namespace
    ? `${text} is allocated to ${describeLeaseOwner(holder)}`
    : `${text} is allocated to an owner in another namespace (AddressLease ${metadata.name})`;
}

/** For an address that is kept for a claim whose lease is lost, until the claim has a lease again. */
export function restoreHoldMessage(
  address: Address,
  { namespace, name }: { readonly namespace: string; readonly name: string },
  reader: { readonly namespace: string },
): string {
  const claim = namespace === reader.namespace ? `IPAMClaim ${namespace}/${name}` : 'an IPAMClaim of another namespace';
  return `${formatAddress(address)} is kept for ${claim}, which has it in its status and no lease yet`;
}

export function pendingWriteMessage(address: Address): string {
  return `${formatAddress(address)} is being allocated to another owner`;
}

/** @param until in the clock's milliseconds, which began at the time of day */
export function notYetMessage(lease: LeaseRecord, until: number, { cooldownMs }: LeaseTimes): string {
  const { address, mac, networkData } = lease;
  if (networkData !== undefined)
    return `${formatAddress(address)} is kept until the process guest has removed it from the network data of its last VM`;
  const isSticky = mac !== undefined && until > coolingStart(lease) + cooldownMs;
  const state = isSticky ? `is kept for MAC address ${mac}` : 'cools down';
  return `${formatAddress(address)} ${state} until ${new Date(until).toISOString()}`;
}

/** @param message why the address cannot be allocated now to the MAC address for which the lease reserves it */
export function reservationMessage({ mac }: LeaseRecord, message: string): string {
  return mac === undefined ? message : `${message}, and is reserved for MAC address ${mac}`;
}

/** Returns the beginning that all messages about a full pool share; the counts after it change often. */
export function poolFullSubject(pool: Pool, family: Family): string {
  return `pool ${pool.name} is full${pool.families.length > 1 ? ` for ${formatFamily(family)}` : ''}`;
}

/** How many addresses of one family of a pool nobody gets, and why. */
interface PoolUseCounts {
  size: bigint;
  cooling: number;
  heldByStopped: number;
  quarantined?: number;
}

/** For example `pool blue is full: 254 of 254 leased, 3 of them by stopped VMs`. */
export function poolFullMessage(
  pool: Pool,
  family: Family,
  { size, cooling, heldByStopped, quarantined = 0 }: PoolUseCounts,
): string {
  if (size === 0n) return `${poolFullSubject(pool, family)}: ${describeEmptiness(pool, family)}`;
  const counts = [
    `${size - BigInt(cooling + quarantined)} of ${size} leased`,
    ...(heldByStopped > 0 ? [`${heldByStopped} of them by stopped VMs`] : []),
    ...(cooling > 0 ? [`${cooling} cooling down`] : []),
    ...(quarantined > 0 ? [`${quarantined} quarantined, because other hosts have them`] : []),
  ];
  return `${poolFullSubject(pool, family)}: ${counts.join(', ')}`;
}

/** Returns the sentence that follows {@link poolFullMessage}: what to do. */
export function poolFullRemedy(pool: Pool, family: Family): string {
  const isEmpty = addressesOf(pool, family, 'open').isEmpty;
  const remedy = isEmpty ? 'Correct its subnets' : 'Delete VMs and pods that are no longer needed';
  return `${remedy}, or ${growthRemedy(pool)}`;
}

/** Says why a pool allocates no address of a family without a request. */
function describeEmptiness(pool: Pool, family: Family): string {
  if (!addressesOf(pool, family, 'requestable').isEmpty) return 'its addresses are only for workloads that request one';
  return addressesOf(pool, family, 'leasable').isEmpty
    ? 'ranges, exclude and gateway of its subnets leave no address'
    : 'all of its addresses are draining';
}

function requestOneOf(leasable: RangeSet, family: Family): string {
  const texts = leasable.ranges.slice(0, MAX_RANGES_SHOWN).map(({ first, last }) => {
    const from = formatAddress({ family, value: first });
    return first === last ? from : `${from}-${formatAddress({ family, value: last })}`;
  });
  const more = leasable.ranges.length > MAX_RANGES_SHOWN ? ' …' : '';
  return `request one of ${texts.join(', ')}${more}`;
}
