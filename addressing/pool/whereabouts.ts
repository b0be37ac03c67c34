import type { PoolSubnet } from '../../api/address-pool.js';
import type { HoldfastIpamConfig, WhereaboutsRange } from '../../api/ipam-config.js';
import type { NetworkConfigProblem } from '../../api/network-attachment.js';
import { type Address, AddressError, formatAddress, parseAddress, parseAddressOrPrefix } from '../address/address.js';
import { type Cidr, containsAddress, firstOf, formatCidr, lastOf, networkOf } from '../address/cidr.js';

export type SubnetConversion = { ok: true; subnets: PoolSubnet[] } | { ok: false; problem: NetworkConfigProblem };

/** Carries a problem to {@link subnetsOfRanges}, which catches it. */
class WhereaboutsRangeError extends Error {
  readonly problem: NetworkConfigProblem;

  constructor(field: string, message: string) {
    super(message);
    this.problem = { field, message };
  }
}

/**
 * Converts the ranges of a whereabouts config to the subnets of a pool. It follows whereabouts' pkg/config: host bits of a CIDR are
 * ignored, `first-last/length` overrides `range_start` and `range_end`, and exclusions or gateways outside of all ranges have no effect.
 * Two differences: a start or end outside the range is an error, because ignoring it would lease unintended addresses; and a pod gets
 * one address per family, not one per range.
 */
export function subnetsOfRanges({
  path,
  ranges,
  gateway,
}: Pick<HoldfastIpamConfig, 'path' | 'ranges' | 'gateway'>): SubnetConversion {
  try {
    const router = gateway === undefined ? undefined : parseField(`${path}.gateway`, () => parseAddress(gateway));
    return { ok: true, subnets: ranges.map((range) => subnetOfRange(range, router)) };
  } catch (error) {
    if (error instanceof WhereaboutsRangeError) return { ok: false, problem: error.problem };
    throw error;
  }
}

interface WhereaboutsSpan {
  cidr: Cidr;
  start?: Address;
  end?: Address;
}

function subnetOfRange(range: WhereaboutsRange, gateway: Address | undefined): PoolSubnet {
  const { cidr, start, end } = spanOf(range);
  const first = start?.value ?? firstOf(cidr);
  const last = end?.value ?? lastOf(cidr);
  if (first > last)
    throw new WhereaboutsRangeError(`${range.path}.range_end`, 'is before the start of the range: swap the two');
  const text = (value: bigint) => formatAddress({ family: cidr.family, value });
  const exclude = range.exclude.flatMap((text, index) => {
    const excluded = parseField(`${range.path}.exclude[${index}]`, () => parseNetwork(text));
    return exclusionIn(cidr, excluded);
  });
  return {
    cidr: formatCidr(cidr),
    ...((start ?? end) && { ranges: [`${text(first)}-${text(last)}`] }),
    ...(exclude.length > 0 && { exclude }),
    ...(gateway !== undefined && containsAddress(cidr, gateway) && { gateway: formatAddress(gateway) }),
  };
}

function spanOf(range: WhereaboutsRange): WhereaboutsSpan {
  const field = `${range.path}.range`;
  const dash = range.range.indexOf('-');
  if (dash >= 0) {
    const { address: end, cidr } = parseField(field, () => parseInterface(range.range.slice(dash + 1)));
    const start = parseField(field, () => parseAddress(range.range.slice(0, dash)));
    return { cidr, start: requireWithin(cidr, start, field), end };
  }
  const { cidr } = parseField(field, () => parseInterface(range.range));
  const bound = (text: string | undefined, key: string) => {
    if (text === undefined) return undefined;
    const boundField = `${range.path}.${key}`;
    const address = parseField(boundField, () => parseAddress(text));
    return requireWithin(cidr, address, boundField);
  };
  const start = bound(range.start, 'range_start');
  const end = bound(range.end, 'range_end');
  return { cidr, ...(start && { start }), ...(end && { end }) };
}

/** Parses an address with a prefix length. */
function parseInterface(text: string): { address: Address; cidr: Cidr } {
  const { address, prefixLength } = parseAddressOrPrefix(text);
  if (prefixLength === undefined) throw new AddressError(`"${text}" has no prefix length: write it like ${text}/24`);
  return { address, cidr: networkOf(address, prefixLength) };
}

function parseNetwork(text: string): Cidr {
  const { address, prefixLength } = parseAddressOrPrefix(text);
  return networkOf(address, prefixLength ?? (address.family === 4 ? 32 : 128));
}

/** Returns the part of the excluded network that is in the range. One of two networks contains the other, or they are disjoint. */
function exclusionIn(cidr: Cidr, excluded: Cidr): string[] {
  const hasBase = containsAddress(cidr, { family: excluded.family, value: excluded.base });
  if (hasBase && excluded.prefixLength >= cidr.prefixLength) return [formatCidr(excluded)];
  return containsAddress(excluded, { family: cidr.family, value: cidr.base }) ? [formatCidr(cidr)] : [];
}

function requireWithin(cidr: Cidr, address: Address, field: string): Address {
  if (containsAddress(cidr, address)) return address;
  const problem = `is ${formatAddress(address)}, which is not in ${formatCidr(cidr)}`;
  throw new WhereaboutsRangeError(field, `${problem}: write an address of that network`);
}

function parseField<T>(field: string, parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    if (error instanceof AddressError) throw new WhereaboutsRangeError(field, `is invalid: ${error.message}`);
    throw error;
  }
}
