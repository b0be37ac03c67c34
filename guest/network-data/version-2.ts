import { stringify } from 'yaml';
import { formatAddress } from '../../addressing/address/address.js';
import { formatCidr } from '../../addressing/address/cidr.js';
import { type NicConfig, type StaticNic, acceptsAdvertisements } from './guest-network.js';

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
    ...omitEmpty({ gateway4: gateway(4), gateway6: gateway(6), mtu }),
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

function omitEmpty(fields: Readonly<Record<string, string | number | undefined>>): object {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}
