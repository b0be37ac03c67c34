import { type IPAMClaim, macHeldSince } from '../api/ipam-claim.js';
import { byAge, objectKey } from '../api/meta.js';

/** A claim whose guest has a MAC address on its network. */
export interface ServedMac {
  readonly claim: IPAMClaim;
  /** Lower case, with colons. */
  readonly mac: string;
  /** The NAD of the interface. The layer-2 segment is unknown for some plugins. */
  readonly nad: { readonly segment?: string };
}

/**
 * Returns the guests that must not have the answers for their MAC address, each with the one that had it first on the same network or layer-2
 * segment. Tenants write MAC addresses, so who copies one must not take the answers of its owner. Every process decides the same.
 */
export function earlierOwners<Guest extends ServedMac>(guests: readonly Guest[]): Map<Guest, Guest> {
  const byMac = new Map<string, Guest[]>();
  for (const each of guests) {
    const group = byMac.get(each.mac);
    if (group === undefined) byMac.set(each.mac, [each]);
    else group.push(each);
  }
  const found = new Map<Guest, Guest>();
  for (const group of byMac.values()) if (group.length > 1) compare(group, found);
  return found;
}

function compare<Guest extends ServedMac>(group: readonly Guest[], found: Map<Guest, Guest>): void {
  const since = new Map(group.map((each) => [each, macHeldSince(each.claim, each.mac)]));
  const sinceOf = (guest: Guest) => since.get(guest) ?? Infinity;
  const inOrder = group.toSorted((a, b) => compareTimes(sinceOf(a), sinceOf(b)) || byAgeAndKey(a, b));
  const firstOn = new Map<string, Guest>();
  for (const guest of inOrder) {
    const { claim, nad } = guest;
    const wires = [`network ${claim.spec.network}`, ...(nad.segment === undefined ? [] : [`segment ${nad.segment}`])];
    const first = wires.map((wire) => firstOn.get(wire)).find((each) => each !== undefined);
    if (first !== undefined) found.set(guest, first);
    for (const wire of wires) if (!firstOn.has(wire)) firstOn.set(wire, guest);
  }
}

/** Infinity equals itself. */
function compareTimes(a: number, b: number): number {
  return a === b ? 0 : a - b;
}

/** Claims of two namespaces may have one name. */
function byAgeAndKey({ claim: a }: ServedMac, { claim: b }: ServedMac): number {
  return byAge(a, b) || (objectKey(a) < objectKey(b) ? -1 : 1);
}
