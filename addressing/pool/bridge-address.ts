import { asRecord } from '../../api/json.js';
import { holdfastSection } from '../../api/networks/ipam-delegation.js';
import { BRIDGE_PLUGINS } from '../../api/networks/nad-guests.js';
import { type NetworkAttachmentDefinition, readCniConfig } from '../../api/networks/network-attachment.js';
import { formatAddress } from '../address/address.js';
import { firstOf, formatCidr } from '../address/cidr.js';
import type { Pool } from './pool.js';

/**
 * Says which addresses of a pool the plugin `bridge` gives to the bridge of each node, although the pool may allocate them. It takes the first
 * address of a subnet for which it is told no gateway.
 */
export function bridgeAddressProblems(nad: NetworkAttachmentDefinition, { subnets }: Pick<Pool, 'subnets'>): string[] {
  const config = readCniConfig(nad);
  const section = holdfastSection((config.ok && config.value) || {});
  const plugin = asRecord(section?.plugin);
  const key = ['isGateway', 'isDefaultGateway'].find((each) => plugin[each] === true);
  if (section === undefined || key === undefined || !BRIDGE_PLUGINS.includes(plugin.type)) return [];
  return subnets.flatMap(({ cidr, gateway, open }) => {
    const value = firstOf(cidr) + 1n;
    if (gateway !== undefined || !open.has(value)) return [];
    const address = formatAddress({ family: cidr.family, value });
    return [
      `${section.path.replace(/ipam$/, key)} gives ${address} to the bridge of each node, and the pool allocates it to others: write it as the gateway of subnet ${formatCidr(cidr)}`,
    ];
  });
}
