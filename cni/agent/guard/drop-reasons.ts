import type { DropReason } from './rule-set.js';

/** What a port sent that is not of its claim, by the reason for which guards drop it. */
const DROPPED: Readonly<Record<DropReason, string>> = {
  source_mac: 'frames from another MAC address',
  held: 'frames before the guest has moved to this node',
  bridge_control: 'control frames of bridges, such as spanning tree',
  vlan_tag: 'frames with a VLAN tag',
  ethertype: 'a protocol besides ARP, IPv4 and IPv6',
  arp_sender: 'ARP for another address',
  ipv4_source: 'IPv4 from another address',
  ipv6_source: 'IPv6 from another address',
  dhcp_server: 'messages of a DHCP server',
  router_advertisement: 'router advertisements',
  icmp_redirect: 'redirects',
  neighbour_target: 'neighbour advertisements for another address',
  extension_header: 'IPv6 extension headers',
  multicast_router: 'messages of a multicast router',
  virtual_router: 'messages of a virtual router (VRRP, CARP)',
  malformed: 'packets with invalid headers',
};

/** @param reason of any version of the rules */
export function describeDropped(reason: string): string {
  const text = Object.hasOwn(DROPPED, reason) ? DROPPED[reason as DropReason] : 'other traffic';
  return `${text} (${reason})`;
}

/** In 10 s, the time between two counts: the kernel of a launcher reports its multicast groups with the MAC address of KubeVirt's bridge, also when a querier asks. */
const MAX_OF_LAUNCHER = 10;
const MAX_SECONDS = 10;

/**
 * A hold drops what the kernel of a migration's target sends, which is no fault of the guest.
 * @param seconds in which the packets were dropped; more than 10 if nobody counted for some time
 */
export function isOfGuest(reason: string, packets: number, seconds: number): boolean {
  if (reason === ('source_mac' satisfies DropReason))
    return packets > MAX_OF_LAUNCHER * Math.max(1, seconds / MAX_SECONDS);
  return reason !== ('held' satisfies DropReason);
}
