import { describeValue } from '../../api/json.js';
import { type Family, AddressError, formatFamily, parseAddress } from './address.js';
import { parseCidr, rangeOf } from './cidr.js';
import type { Range } from './ranges.js';

/**
 * Parses `10.0.0.5`, `10.0.0.0/28` or `10.0.0.5-10.0.0.9`.
 * @throws {AddressError}
 */
export function parseRange(text: string): Range & { readonly family: Family } {
  const dash = text.indexOf('-');
  if (dash !== -1) return parseSpan(text, text.slice(0, dash), text.slice(dash + 1));
  if (!text.includes('/')) {
    const { family, value } = parseAddress(text);
    return { family, first: value, last: value };
  }
  const cidr = parseCidr(text);
  return { family: cidr.family, ...rangeOf(cidr) };
}

function parseSpan(text: string, from: string, to: string): Range & { readonly family: Family } {
  const [first, last] = [parseAddress(from), parseAddress(to)];
  if (first.family !== last.family) {
    throw new AddressError(
      `${describeValue(text)} begins with an ${formatFamily(first.family)} and ends with an ${formatFamily(last.family)} address: write two of one family`,
    );
  }
  if (first.value > last.value) {
    throw new AddressError(`${describeValue(text)} ends before it begins: write ${to}-${from}`);
  }
  return { family: first.family, first: first.value, last: last.value };
}
