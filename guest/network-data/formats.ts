import { stringify } from 'yaml';
import { type Address, BITS, type Family, formatAddress } from '../../addressing/address/address.js';
import { type Cidr, formatCidr } from '../../addressing/address/cidr.js';
import { omitUndefined } from '../../api/json.js';

/** One interface of a guest as its operating system must configure it. Both formats are written from it. */
export type NicConfig = DynamicNic | StaticNic;

/** Somebody else gives the interface its addresses, by DHCP. */
interface DynamicNic {
  readonly kind: 'dhcp';
  /** Lower case, with colons. */
  readonly mac: string;
  /** The guest takes its default route from this interface. */
  readonly hasDefaultRoute: boolean;
}

interface StaticNic {
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
function acceptsAdvertisements({ hasDefaultRoute, gateways }: StaticNic): boolean {
  return hasDefaultRoute && !gateways.some(({ family }) => family === 6);
}

/**
 * Writes network config version 2 for a cloudInitNoCloud volume. Interfaces are matched by MAC address and keep their names. The default route
 * is written as `gateway4` and `gateway6`, which netplan calls deprecated: cloud-init 22.4 turns a route to `::/0` into `::/64`, and fails with
 * a route to `default`.
 */
export function version2Text(nics: readonly NicConfig[]): string {
  const ethernets = Object.fromEntries(
    nics.map((nic, index) => [
      `nic${index}`,
      {
        match: { macaddress: nic.mac },
        ...(nic.kind === 'dhcp' ? dynamicFields(nic.hasDefaultRoute) : staticFields(nic)),
      },
    ]),
  );
  // quoted, because YAML 1.1 reads a MAC address of digits as a number to the base 60
  return stringify(
    { version: 2, ethernets },
    { defaultStringType: 'QUOTE_DOUBLE', defaultKeyType: 'PLAIN', lineWidth: 0 },
  );
}

/** Optional, so that the boot does not wait for a family that the network does not have. */
function dynamicFields(hasDefaultRoute: boolean): object {
  const overrides = { 'use-routes': false };
  return {
    ...{ dhcp4: true, dhcp6: true, optional: true },
    ...(!hasDefaultRoute && { 'dhcp4-overrides': overrides, 'dhcp6-overrides': overrides }),
  };
}

function staticFields(nic: StaticNic): object {
  const { addresses, gateways, routes, nameservers, search, mtu } = nic;
  const gateway = (family: 4 | 6) => gateways.filter((each) => each.family === family).map(formatAddress)[0];
  return {
    ...{ dhcp4: false, dhcp6: false },
    ...(!acceptsAdvertisements(nic) && { 'accept-ra': false }),
    addresses: addresses.map(({ address, prefixLength }) => `${formatAddress(address)}/${prefixLength}`),
    ...omitUndefined({ gateway4: gateway(4), gateway6: gateway(6), mtu }),
    ...(routes.length > 0 && {
      routes: routes.map(({ destination, gateway: via }) => ({ to: formatCidr(destination), via: formatAddress(via) })),
    }),
    ...((nameservers.length > 0 || search.length > 0) && {
      nameservers: {
        ...(nameservers.length > 0 && { addresses: nameservers.map(formatAddress) }),
        ...(search.length > 0 && { search }),
      },
    }),
  };
}

/**
 * Writes OpenStack's `network_data.json` for a cloudInitConfigDrive volume. cloud-init 22.4 ignores the `services` of a network, and its renderers
 * differ about the others, so DNS is written in three places: per network in cloud-init's own keys, and for all in `services`, which
 * cloudbase-init reads too.
 */
export function openstackText(nics: readonly NicConfig[]): string {
  const links = nics.map((nic, index) => ({
    id: linkId(index),
    type: 'phy',
    ethernet_mac_address: nic.mac,
    ...(nic.kind === 'static' && nic.mtu !== undefined && { mtu: nic.mtu }),
  }));
  const networks = nics.flatMap((nic, index) => networksOf(nic, linkId(index)));
  const nameservers = nics.flatMap((nic) => (nic.kind === 'static' ? nic.nameservers : [])).map(formatAddress);
  const services = [...new Set(nameservers)].map((address) => ({ type: 'dns', address }));
  return `${JSON.stringify({ links, networks, services }, undefined, 2)}\n`;
}

function linkId(index: number): string {
  return `nic${index}`;
}

function networksOf(nic: NicConfig, link: string): object[] {
  if (nic.kind === 'dhcp') {
    return (['ipv4_dhcp', 'ipv6_dhcp'] as const).map((type) => ({ id: `${link}-${type}`, link, type }));
  }
  return nic.addresses.map(({ address, prefixLength }, index) => {
    const { family } = address;
    const type = family === 4 ? 'ipv4' : 'ipv6';
    return {
      ...{ id: `${link}-${type}`, link, type },
      ip_address: formatAddress(address),
      netmask: formatMask(family, prefixLength),
      routes: routesOf(nic, family),
      // once for each interface: renderers add up those of all its networks
      ...(index === 0 && dnsOf(nic)),
    };
  });
}

function dnsOf({ nameservers, search }: StaticNic): object {
  return {
    dns_nameservers: nameservers.map(formatAddress),
    dns_search: search,
    services: nameservers.map((server) => ({ type: 'dns', address: formatAddress(server) })),
  };
}

function routesOf({ gateways, routes }: StaticNic, family: Family): object[] {
  const all = [
    ...gateways.map((gateway) => ({ destination: { base: 0n, prefixLength: 0 }, gateway })),
    ...routes,
  ].filter(({ gateway }) => gateway.family === family);
  return all.map(({ destination, gateway }) => ({
    network: formatAddress({ family, value: destination.base }),
    netmask: formatMask(family, destination.prefixLength),
    gateway: formatAddress(gateway),
  }));
}

function formatMask(family: Family, prefixLength: number): string {
  const bits = BITS[family];
  const value = ((1n << BigInt(prefixLength)) - 1n) << BigInt(bits - prefixLength);
  return formatAddress({ family, value } satisfies Address);
}
