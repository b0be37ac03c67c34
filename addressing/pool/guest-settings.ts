import type { NadGuestOptions } from '../../api/networks/nad-guests.js';
import { type Address, parseAddress, parseIfValid } from '../address/address.js';
import { type Cidr, containsAddress, parseCidr } from '../address/cidr.js';
import { MIN_IPV6_MTU, isDomain } from './guest.js';
import type { Pool, Subnet } from './pool.js';

/** Everything but the addresses that guests on a NAD get. */
interface GuestSettings {
  readonly nameservers: readonly Address[];
  readonly search: readonly string[];
  readonly ntp: readonly Address[];
  /** Without the default route. */
  readonly routes: readonly { readonly destination: Cidr; readonly gateway: Address }[];
  readonly mtu?: number;
}

/**
 * Returns the settings of the pool, and those of the NAD where the pool has none. Settings of the NAD that cannot be used are left out.
 * @param subnets those in which the guest has addresses: it reaches only gateways there. Default: all of the pool
 */
export function guestSettings(pool: Pool, nad: NadGuestOptions = {}, subnets = pool.subnets): GuestSettings {
  const { dns, ntp = [], routes, mtu } = { ...fromNad(pool, nad, subnets), ...pool.guest };
  const reached = routes.filter(({ gateway }) => subnets.some(({ cidr }) => containsAddress(cidr, gateway)));
  return { nameservers: dns.nameservers, search: dns.search, ntp, routes: reached, ...(mtu !== undefined && { mtu }) };
}

function fromNad(pool: Pool, { dns, routes = [], mtu }: NadGuestOptions, subnets: readonly Subnet[]) {
  const nameservers = (dns?.nameservers ?? []).flatMap((text) => parseIfValid(parseAddress, text) ?? []);
  return {
    dns: { nameservers, search: (dns?.search ?? []).filter(isDomain) },
    routes: usableRoutes(subnets, routes),
    mtu: usableMtu(pool, mtu),
  };
}

function usableMtu({ families }: Pool, mtu: number | undefined): number | undefined {
  return mtu !== undefined && mtu < MIN_IPV6_MTU && families.includes(6) ? undefined : mtu;
}

/** The subnets' gateways are the default route, and the next hop of a route without one. */
function usableRoutes(
  subnets: readonly Subnet[],
  routes: NonNullable<NadGuestOptions['routes']>,
): GuestSettings['routes'] {
  return routes.flatMap((route) => {
    const destination = parseIfValid(parseCidr, route.destination);
    if (destination === undefined || destination.prefixLength === 0) return [];
    const subnet = subnets.find((each) => each.cidr.family === destination.family && each.gateway !== undefined);
    const gateway = route.gateway === undefined ? subnet?.gateway : parseIfValid(parseAddress, route.gateway);
    return gateway?.family === destination.family ? { destination, gateway } : [];
  });
}
