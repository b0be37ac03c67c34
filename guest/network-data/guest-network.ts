import type { Address } from '../../addressing/address/address.js';
import type { Cidr } from '../../addressing/address/cidr.js';

/** One interface of a guest as its operating system must configure it. Both formats are written from it. */
export type NicConfig = DynamicNic | StaticNic;

/** Somebody else gives the interface its addresses, by DHCP. */
export interface DynamicNic {
  readonly kind: 'dhcp';
  /** Lower case, with colons. */
  readonly mac: string;
  /** The guest takes its default route from this interface. */
  readonly hasDefaultRoute: boolean;
}

export interface StaticNic {
  readonly kind: 'static';
  readonly mac: string;
  readonly hasDefaultRoute: boolean;
  readonly addresses: readonly { readonly address: Address; readonly prefixLength: number }[];
  /** At most one of each family, and only on the interface with the default route. */
  readonly gateways: readonly Address[];
  /** Without the default route. */
  readonly routes: readonly { readonly destination: Cidr; readonly gateway: Address }[];
  readonly nameservers: readonly Address[];
  readonly search: readonly string[];
  readonly mtu?: number;
}

/** True if router advertisements may bring the interface an IPv6 default route: it must be the only one of the guest. */
export function acceptsAdvertisements({ hasDefaultRoute, gateways }: StaticNic): boolean {
  return hasDefaultRoute && !gateways.some(({ family }) => family === 6);
}
