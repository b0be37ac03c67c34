import { type Address, BITS, type Family, formatAddress } from '../../addressing/address/address.js';
import type { NicConfig, StaticNic } from './guest-network.js';

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
