import type { Address, Family } from '../../../addressing/address/address.js';
import { type Range, RangeSet } from '../../../addressing/address/ranges.js';
import { EXTENSION_HEADERS, ipv6Chains } from './ipv6-rules.js';
import { ordinaryTraffic } from './ordinary-traffic.js';
import { IS_PARSED, PORTS, PROTOCOL, acceptParsed, dhcpServerRules, virtualRouterRules } from './ip-rules.js';
import {
  type Match,
  type Rule,
  type RuleChain,
  type RuleSet,
  type RuleSetMembers,
  ETHERTYPE,
  EVERY_FRAME,
  FIELDS,
  OWN_MAC,
  accept,
  between,
  deleteFrom,
  drop,
  equals,
  equalsMasked,
  goTo,
  hexOf,
  isIn,
  isNotIn,
} from './rule-set.js';

/** What a port may send. */
export interface GuardedPort {
  readonly mode: RuleSet['mode'];
  /** The guest's MAC address, lower case, with colons; absent: it is that of the pod's interface. */
  readonly mac?: string;
  /** The addresses of the claim or pod. */
  readonly addresses: readonly Address[];
  /** What an administrator allows besides. */
  readonly allowed: AllowedSenders;
  /** Nothing passes until the guest has moved to this port. */
  readonly isHeld: boolean;
  /** Frames of these VLANs pass with the guest's MAC address, because the NAD makes the port a trunk. */
  readonly vlans: readonly Range[];
}

export interface AllowedSenders {
  readonly addresses: readonly (Range & { readonly family: Family })[];
  /** Lower case, with colons. */
  readonly macs: readonly string[];
}

/** From ADD until virt-handler has prepared the target, whose kernel sends nothing any more. Its node may have to pull images first. */
const HOLD_SECONDS = 300;

/** Ethernet and IPv4. */
const ARP_TYPES = '000108000604';
const ARP_OPERATION = { request: 1, reverseRequest: 3 };
const ICMP = { redirect: 5, routerAdvertisement: 9 };
/** The advertisement is that of multicast router discovery (RFC 4286). */
const IGMP = { query: 0x11, multicastRouter: 0x30 };
/** Without the priority. */
const VLAN = { ...FIELDS.vlanTag, mask: '0fff' };
const ANY_IPV4 = '00000000';

/** Makes the rules of a port, as a pure function. The last rule of each chain drops what no other rule accepts. */
export function guardRules(port: GuardedPort): RuleSet {
  const isShared = port.allowed.addresses.length > 0;
  const sets = setsOf(port);
  const chains = [portChain(port, ordinaryTraffic(sets)), arpChain(), ipv4Chain(isShared), ...ipv6Chains(isShared)];
  return { mode: port.mode, sets, chains: port.mode === 'Enforce' ? chains : chains.map(onlyCounting) };
}

function setsOf({ mac, addresses, allowed, isHeld }: GuardedPort): RuleSetMembers[] {
  const own = mac === undefined ? OWN_MAC : macHex(mac);
  const ranges = [
    ...addresses.map(({ family, value }) => ({ family, first: value, last: value })),
    ...allowed.addresses,
  ];
  const macs = [...new Set([own, ...allowed.macs.map(macHex)])];
  const extensions = EXTENSION_HEADERS.map((each) => hexOf(each, 1));
  return [
    { name: 'macs', type: 'ether_addr', elements: macs },
    { name: 'ipv4', type: 'ipv4_addr', ...elementsOf(ranges, 4) },
    { name: 'ipv6', type: 'ipv6_addr', ...elementsOf(ranges, 6) },
    { name: 'extensions', type: 'inet_proto', elements: extensions },
    ...(isHeld
      ? [{ name: 'held', type: 'ether_addr', elements: [EVERY_FRAME.mask], timeoutSeconds: HOLD_SECONDS } as const]
      : []),
  ];
}

/** Sets without ranges are hash tables, which are faster. */
function elementsOf(
  ranges: AllowedSenders['addresses'],
  family: Family,
): Pick<RuleSetMembers, 'elements' | 'isInterval'> {
  const bytes = family === 4 ? 4 : 16;
  const merged = RangeSet.of(ranges.filter((range) => range.family === family)).ranges;
  if (merged.every(({ first, last }) => first === last))
    return { elements: merged.map(({ first }) => hexOf(first, bytes)) };
  return {
    elements: merged.map(({ first, last }) => `${hexOf(first, bytes)}-${hexOf(last, bytes)}`),
    isInterval: true,
  };
}

/** A reverse ARP of another MAC address must not end a hold. It holds all MAC addresses, because the launcher may have its own. */
function portChain({ isHeld, vlans }: GuardedPort, ordinary: readonly Rule[]): RuleChain {
  const { etherType, sourceMac, destinationMac, arpOperation, arpSenderMac } = FIELDS;
  // other frames differ already in the first field, which the kernel compares fast
  const ownReverseArp = [
    equals(arpOperation, ARP_OPERATION.reverseRequest),
    equals(etherType, ETHERTYPE.reverseArp),
    isIn(arpSenderMac, 'macs'),
  ];
  const rules = [
    ...(isHeld
      ? [
          accept(...ownReverseArp, isIn(sourceMac, 'macs'), deleteFrom('held', EVERY_FRAME)),
          drop('held', isIn(EVERY_FRAME, 'held')),
        ]
      : []),
    ...ordinary,
    drop('source_mac', isNotIn(sourceMac, 'macs')),
    goTo('from_ipv4', equals(etherType, ETHERTYPE.ipv4)),
    goTo('from_ipv6', equals(etherType, ETHERTYPE.ipv6)),
    goTo('from_arp', equals(etherType, ETHERTYPE.arp)),
    accept(...ownReverseArp),
    drop('bridge_control', equalsMasked(destinationMac, 'fffffffffff0', '0180c2000000')),
    ...vlans.map(({ first, last }) => accept(equals(etherType, ETHERTYPE.vlan), ...between(VLAN, first, last))),
    ...[ETHERTYPE.vlan, 0x88a8, 0x9100].map((each) => drop('vlan_tag', equals(etherType, each))),
    drop('ethertype'),
  ];
  return { name: 'port', rules };
}

/** A probe (RFC 5227) has no sender. Probing addresses of others would look to them like a conflict. */
function arpChain(): RuleChain {
  const { arpTypes, arpOperation, arpSenderMac, arpSenderIp, arpTargetIp } = FIELDS;
  const sender = [equals(arpTypes, ARP_TYPES), isIn(arpSenderMac, 'macs')];
  const rules = [
    accept(...sender, isIn(arpSenderIp, 'ipv4')),
    accept(
      ...sender,
      equals(arpOperation, ARP_OPERATION.request),
      equals(arpSenderIp, ANY_IPV4),
      isIn(arpTargetIp, 'ipv4'),
    ),
    drop('arp_sender'),
  ];
  return { name: 'from_arp', rules };
}

function ipv4Chain(isShared: boolean): RuleChain {
  const { protocol, sourcePort, destinationPort, ipv4Source, ipv4Destination } = FIELDS;
  const { client, server } = PORTS.dhcp4;
  const icmp = (type: number) => [equals(protocol, PROTOCOL.icmp), equals(FIELDS.icmpType, type)];
  const igmp = (type: number) => [equals(protocol, PROTOCOL.igmp), equals(FIELDS.igmpType, type)];
  const isLaterFragment: Match = { ...equalsMasked(FIELDS.ipv4Fragment, '1fff', '0000'), op: '!=' };
  const toServer = [equals(protocol, PROTOCOL.udp), equals(sourcePort, client), equals(destinationPort, server)];
  const rules = [
    accept(equals(ipv4Source, ANY_IPV4), equals(ipv4Destination, 'ffffffff'), ...toServer),
    drop('ipv4_source', isNotIn(ipv4Source, 'ipv4')),
    drop('multicast_router', equals(protocol, PROTOCOL.pim)),
    ...virtualRouterRules(isShared),
    // a later fragment has no ports or types, but some kernels read them there
    accept(isLaterFragment, IS_PARSED),
    ...dhcpServerRules(PORTS.dhcp4),
    drop('icmp_redirect', ...icmp(ICMP.redirect)),
    drop('router_advertisement', ...icmp(ICMP.routerAdvertisement)),
    drop('multicast_router', ...igmp(IGMP.query)),
    drop('multicast_router', ...igmp(IGMP.multicastRouter)),
    ...acceptParsed(),
  ];
  return { name: 'from_ipv4', rules };
}

/** The hold is no filter of what a guest sends: it applies in both modes. */
function onlyCounting({ name, rules }: RuleChain): RuleChain {
  return {
    name,
    rules: rules.map((rule) =>
      rule.verdict === 'drop' && rule.counts !== 'held' ? { ...rule, verdict: 'accept' } : rule,
    ),
  };
}

function macHex(mac: string): string {
  return mac.replaceAll(':', '');
}
