import type { PoolSubnet } from '../../api/address-pool.js';
import { POOL_LIMITS } from '../../api/limits.js';
import { describeValue } from '../../api/json.js';
import { type Address, BITS, formatAddress, formatFamily, parseAddress } from '../address/address.js';
import {
  type Cidr,
  containsAddress,
  firstOf,
  formatCidr,
  lastOf,
  overlap,
  parseCidr,
  parseRange,
  rangeOf,
} from '../address/cidr.js';
import { type FieldValue, type PoolProblems, type WrittenRange, isAbsent } from './pool-problems.js';
import { RangeSet } from '../address/ranges.js';

/** One subnet of a pool. */
export interface Subnet {
  readonly cidr: Cidr;
  /** The addresses that are allocated without a request. */
  readonly open: RangeSet;
  /** The addresses that may be requested: `open`, and the reserved ones. */
  readonly requestable: RangeSet;
  /** The addresses that owners may have: `requestable`, and the draining ones, which get no new owner. */
  readonly leasable: RangeSet;
  /** The addresses that `exclude` names. */
  readonly excluded: RangeSet;
  readonly gateway?: Address;
}

/** A parsed subnet and the text of its CIDR. */
interface WrittenSubnet {
  readonly subnet: Subnet;
  readonly written: WrittenRange;
}

/** Networks whose addresses no interface can have. */
const UNUSABLE: readonly { readonly cidr: Cidr; readonly why: string }[] = [
  { cidr: parseCidr('0.0.0.0/32'), why: 'which means "no address"' },
  { cidr: parseCidr('127.0.0.0/8'), why: 'whose addresses are local to a machine' },
  { cidr: parseCidr('224.0.0.0/4'), why: 'whose addresses are for multicast' },
  { cidr: parseCidr('255.255.255.255/32'), why: 'which means "all hosts"' },
  { cidr: parseCidr('::/128'), why: 'which means "no address"' },
  { cidr: parseCidr('::1/128'), why: 'which is local to a machine' },
  { cidr: parseCidr('::ffff:0:0/96'), why: 'which many programs read as IPv4' },
  { cidr: parseCidr('ff00::/8'), why: 'whose addresses are for multicast' },
];

/**
 * Parses one subnet of a pool's spec. Never throws; adds what is invalid to the problems.
 * @returns undefined if the CIDR is invalid
 */
export function readSubnet(place: FieldValue<unknown>, problems: PoolProblems): WrittenSubnet | undefined {
  const { field } = place;
  const spec: Partial<Record<keyof PoolSubnet, unknown>> | undefined = problems.readObject(
    place,
    '{cidr: 10.0.0.0/24}',
  );
  if (spec === undefined) return undefined;
  const cidr = problems.parseText({ field: `${field}.cidr`, value: spec.cidr }, '10.0.0.0/24', parseCidr);
  if (cidr === undefined) return undefined;
  const written = { family: cidr.family, ...rangeOf(cidr), field: `${field}.cidr`, text: formatCidr(cidr) };
  rejectUnusable(cidr, written.field, problems);
  return { subnet: readSubnetAddresses(spec, cidr, field, problems), written };
}

function readSubnetAddresses(
  spec: Partial<Record<keyof PoolSubnet, unknown>>,
  cidr: Cidr,
  field: string,
  problems: PoolProblems,
): Subnet {
  const elements = (key: 'ranges' | 'exclude' | 'reserved' | 'draining'): WrittenRange[] =>
    problems
      .readList(`${field}.${key}`, spec[key], POOL_LIMITS[key])
      .flatMap((place) => readSubnetRange(place, cidr, problems) ?? []);
  const ranges = elements('ranges');
  problems.reportOverlaps(ranges, 'remove one of them, or join them');
  if (Array.isArray(spec.ranges) && spec.ranges.length === 0) {
    const problem = 'is empty, so no address can be leased: remove the field to lease the whole subnet';
    problems.add(`${field}.ranges`, problem);
  }
  const exclude = RangeSet.of(elements('exclude'));
  const reserved = RangeSet.of(elements('reserved'));
  const gateway = readGateway({ field: `${field}.gateway`, value: spec.gateway }, cidr, problems);
  const draining = RangeSet.of(elements('draining'));
  const usable = usableOf(cidr, gateway).subtract(exclude);
  const leasable = (ranges.length === 0 ? usable : RangeSet.of(ranges).union(reserved)).intersect(usable);
  const requestable = leasable.subtract(draining);
  const sets = { open: requestable.subtract(reserved), requestable, leasable, excluded: exclude };
  return { cidr, ...sets, ...(gateway !== undefined && { gateway }) };
}

/** Returns the subnet without the addresses that IP or the router needs. */
function usableOf(cidr: Cidr, gateway: Address | undefined): RangeSet {
  const all = rangeOf(cidr);
  const { family, prefixLength } = cidr;
  const hostBits = BITS[family] - prefixLength;
  // /31 (RFC 3021) and /127 (RFC 6164) are links of two addresses; IPv6 has no broadcast address
  const inner = hostBits < 2 ? all : { first: all.first + 1n, last: family === 4 ? all.last - 1n : all.last };
  const router = gateway === undefined ? [] : [{ first: gateway.value, last: gateway.value }];
  return RangeSet.of([inner]).subtract(RangeSet.of(router));
}

function readSubnetRange(place: FieldValue<unknown>, cidr: Cidr, problems: PoolProblems): WrittenRange | undefined {
  const range = problems.parseText(place, '10.0.0.5, 10.0.0.0/28 or 10.0.0.5-10.0.0.9', parseRange);
  if (range === undefined) return undefined;
  const { field } = place;
  const text = String(place.value);
  if (range.family !== cidr.family) {
    problems.add(field, wrongFamily(text, cidr));
    return undefined;
  }
  if (range.first >= firstOf(cidr) && range.last <= lastOf(cidr)) return { ...range, field, text };
  problems.add(field, `${describeValue(text)} is not within ${formatCidr(cidr)}: remove the addresses outside it`);
  return undefined;
}

function readGateway(place: FieldValue<unknown>, cidr: Cidr, problems: PoolProblems): Address | undefined {
  const { field, value } = place;
  if (isAbsent(value)) return undefined;
  const gateway = problems.parseText(place, '10.0.0.1', parseAddress);
  if (gateway === undefined) return undefined;
  const text = formatAddress(gateway);
  if (gateway.family !== cidr.family) {
    problems.add(field, wrongFamily(text, cidr));
  } else if (!containsAddress(cidr, gateway)) {
    const problem = `is not within ${formatCidr(cidr)}, so pods cannot reach it: write an address of the subnet`;
    problems.add(field, `"${text}" ${problem}`);
  } else if (isNetworkOrBroadcast(cidr, gateway)) {
    problems.add(field, `"${text}" is the network or broadcast address of ${formatCidr(cidr)}: write another one`);
  }
  return gateway;
}

function isNetworkOrBroadcast(cidr: Cidr, { value }: Address): boolean {
  return cidr.family === 4 && cidr.prefixLength <= 30 && (value === firstOf(cidr) || value === lastOf(cidr));
}

function rejectUnusable(subnet: Cidr, field: string, problems: PoolProblems): void {
  const unusable = UNUSABLE.find(({ cidr }) => overlap(cidr, subnet));
  if (unusable === undefined) return;
  const { cidr, why } = unusable;
  problems.add(field, `"${formatCidr(subnet)}" overlaps with ${formatCidr(cidr)}, ${why}: write another subnet`);
}

function wrongFamily(text: string, cidr: Cidr): string {
  return `${describeValue(text)} is not of the family of ${formatCidr(cidr)}: write an ${formatFamily(cidr.family)} address, or move it to a subnet of its family`;
}
