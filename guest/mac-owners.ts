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
 * Decides who has the answers for a MAC address: of the guests on one network or layer-2 segment, the one that had it first. Tenants write MAC
 * addresses, so who copies one must not take the answers of its owner. Every process decides the same.
 */
export class MacOwners<Guest extends ServedMac> {
  /** By MAC address and network, and by MAC address and segment. */
  readonly #first = new Map<string, Guest>();

  add(guest: Guest): void {
    for (const wire of wiresOf(guest)) {
      const first = this.#first.get(wire);
      if (first === undefined || isEarlier(guest, first)) this.#first.set(wire, guest);
    }
  }

  /** Returns the guest that had the MAC address of this one before; undefined if this one is the first. Call it when all are added. */
  earlierThan(guest: Guest): Guest | undefined {
    return wiresOf(guest)
      .map((wire) => this.#first.get(wire))
      .find((first) => first !== undefined && first !== guest);
  }
}

function wiresOf({ mac, claim, nad }: ServedMac): string[] {
  const network = `${mac} network ${claim.spec.network}`;
  return nad.segment === undefined ? [network] : [network, `${mac} segment ${nad.segment}`];
}

function isEarlier(one: ServedMac, other: ServedMac): boolean {
  const [a, b] = [one, other].map(({ claim, mac }) => macHeldSince(claim, mac)) as [number, number];
  return a === b ? byAgeAndKey(one, other) < 0 : a < b;
}

/** Claims of two namespaces may have one name. */
function byAgeAndKey({ claim: a }: ServedMac, { claim: b }: ServedMac): number {
  return byAge(a, b) || (objectKey(a) < objectKey(b) ? -1 : 1);
}
