import { type Match, type Rule, FIELDS, accept, drop, equals } from './rule-set.js';

export const PROTOCOL = {
  hopByHop: 0,
  icmp: 1,
  igmp: 2,
  tcp: 6,
  udp: 17,
  fragment: 44,
  icmpv6: 58,
  pim: 103,
  vrrp: 112,
};
export const PORTS = { dhcp4: { client: 68, server: 67 }, dhcp6: { client: 546, server: 547 } };

/** Clients read answers from any source port, and servers may answer other servers. */
export function dhcpServerRules({ client, server }: { readonly client: number; readonly server: number }): Rule[] {
  const udp = equals(FIELDS.protocol, PROTOCOL.udp);
  return [
    drop('dhcp_server', udp, equals(FIELDS.sourcePort, server)),
    drop('dhcp_server', udp, equals(FIELDS.destinationPort, client)),
  ];
}

/** With VRRP or CARP a guest could take over from the routers of the network. Those who share an address need it. */
export function virtualRouterRules(isShared: boolean): Rule[] {
  return isShared ? [] : [drop('virtual_router', equals(FIELDS.protocol, PROTOCOL.vrrp))];
}

/** The protocol is known only of packets whose headers the kernel could parse. Of others, no rule has seen ports or types. */
export const IS_PARSED: Match = { ...equals(FIELDS.protocol, 0), op: '>=' };

export function acceptParsed(): Rule[] {
  return [accept(IS_PARSED), drop('malformed')];
}
