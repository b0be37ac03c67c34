import { isRecord } from '../../api/json.js';
import { type Address, AddressError, parseAddressOrPrefix, readAddress } from '../../addressing/address/address.js';
import { formatCidr, networkOf } from '../../addressing/address/cidr.js';
import type { WhereaboutsObject } from './plan-types.js';

/** These functions follow the names that whereabouts gives its objects (pkg/storage/kubernetes). */

/**
 * Returns the name of the IPPool of a range: `[<network_name>-][<node>-]10.0.0.0-24`.
 * @param range a CIDR
 */
export function ipPoolName(range: string, networkName = '', node = ''): string {
  const zeroed = range.endsWith(':') ? `${range}0` : range;
  return [networkName, node, zeroed.replaceAll(/[:/]/g, '-')].filter((part) => part !== '').join('-');
}

/** Returns a range as written, and as newer versions of whereabouts write it: without host bits, and the network of `first-last/length`. */
export function spellingsOf(range: string): string[] {
  const cidr = range.slice(range.indexOf('-') + 1);
  try {
    const { address, prefixLength } = parseAddressOrPrefix(cidr);
    if (prefixLength === undefined) return [range];
    return [...new Set([formatCidr(networkOf(address, prefixLength)), cidr, range])];
  } catch (error) {
    if (error instanceof AddressError) return [range];
    throw error;
  }
}

/**
 * Returns all meanings of a reservation's name: `[<network_name>-]10.0.0.5`, IPv6 with dashes for colons. The name is ambiguous: `lan-a-fd00--5` is
 * fd00::5 of `lan-a`, or a:fd00::5 of `lan`.
 */
export function readReservationName(
  name: string,
  networkNames: Iterable<string>,
): { networkName: string; address: Address }[] {
  return ['', ...networkNames].flatMap((networkName) => {
    const prefix = networkName === '' ? '' : `${networkName}-`;
    if (!name.startsWith(prefix)) return [];
    const text = name.slice(prefix.length);
    const address = readAddress(text) ?? readAddress(text.replaceAll('-', ':'));
    return address === undefined ? [] : [{ networkName, address }];
  });
}

/** Returns the names of the IPPools of a range's slices. A NodeSlicePool is named like the network or its `network_name`. */
export function sliceNames(slices: readonly WhereaboutsObject[], network: string, networkName: string): string[] {
  const own = slices.find(({ metadata }) => metadata.name === (networkName || network));
  const allocations: unknown = isRecord(own?.status) ? own.status.allocations : undefined;
  if (!Array.isArray(allocations)) return [];
  return allocations.flatMap((allocation: unknown) => {
    if (!isRecord(allocation)) return [];
    const { nodeName, sliceRange } = allocation;
    if (typeof nodeName !== 'string' || typeof sliceRange !== 'string' || sliceRange === '') return [];
    return [ipPoolName(sliceRange, networkName, nodeName)];
  });
}
