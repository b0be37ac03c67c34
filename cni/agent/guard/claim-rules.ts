import type { Address, Family } from '../../../addressing/address/address.js';
import { type Range, RangeSet } from '../../../addressing/address/ranges.js';
import {
  type DropReason,
  type Match,
  type Rule,
  type RuleChain,
  type RuleSet,
  type RuleSetMembers,
  FIELDS,
  OWN_MAC,
  between,
  deleteFrom,
  equals,
  equalsMasked,
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
  /** Frames with a VLAN tag pass with the guest's MAC address, because the NAD makes the port a trunk. */
  readonly isTrunk: boolean;
}

export interface AllowedSenders {
  readonly addresses: readonly (Range & { readonly family: Family })[];
  /** Lower case, with colons. */
  readonly macs: readonly string[];
}

/** Launchers need up to a minute from ADD until virt-handler has prepared them. After that their kernel sends nothing. */
const HOLD_SECONDS = 60;

const ETHERTYPE = { ipv4: 0x0800, arp: 0x0806, reverseArp: 0x8035, vlan: 0x8100, ipv6: 0x86dd };
/** Ethernet and IPv4. */
const ARP_TYPES = '000108000604';
const PROTOCOL = { hopByHop: 0, igmp: 2, udp: 17, fragment: 44, icmpv6: 58, vrrp: 112 };
/** All extension headers but that of fragments: hop-by-hop, routing, AH, options, mobility, HIP and shim6. */
const EXTENSION_HEADERS = [PROTOCOL.hopByHop, 43, 51, 60, 135, 139, 140];
const ICMPV6 = { query: 130, routerSolicitation: 133, advertisement: 134, solicitation: 135, neighbour: 136 };
const [REDIRECT, MULTICAST_ROUTER] = [137, 151];
/** Multicast reports: MLDv1 report and done, MLDv2 report. */
const REPORTS = { first: 131, last: 132, version2: 143 };
const IGMP_QUERY = 0x11;
const PORTS = { dhcp4: { client: 68, server: 67 }, dhcp6: { client: 546, server: 547 } };
const ANY_IPV4 = '00000000';
const ANY_IPV6 = '0'.repeat(32);

/** Makes the rules of a port, as a pure function. The last rule of each chain drops what no other rule accepts. */
export function guardRules(port: GuardedPort): RuleSet {
  const chains = [portChain(port), arpChain(), ipv4Chain(port), ipv6Chain(port), withoutSourceChain()];
  return { mode: port.mode, sets: setsOf(port), chains: port.mode === 'Enforce' ? chains : chains.map(onlyCounting) };
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
    { name: 'ipv4', type: 'ipv4_addr', elements: elementsOf(ranges, 4), isInterval: true },
    { name: 'ipv6', type: 'ipv6_addr', elements: elementsOf(ranges, 6), isInterval: true },
    { name: 'extensions', type: 'inet_proto', elements: extensions },
    ...(isHeld ? [{ name: 'held', type: 'ether_addr', elements: [own], timeoutSeconds: HOLD_SECONDS } as const] : []),
  ];
}

function elementsOf(ranges: AllowedSenders['addresses'], family: Family): string[] {
  const bytes = family === 4 ? 4 : 16;
  const merged = RangeSet.of(ranges.filter((range) => range.family === family)).ranges;
  return merged.map(({ first, last }) => `${hexOf(first, bytes)}-${hexOf(last, bytes)}`);
}

/** The MAC address is checked first: a reverse ARP of another one must not end the hold. */
function portChain({ isHeld, isTrunk }: GuardedPort): RuleChain {
  const { etherType, sourceMac, destinationMac } = FIELDS;
  const ownReverseArp = [equals(etherType, ETHERTYPE.reverseArp), isIn(FIELDS.arpSenderMac, 'macs')];
  const rules = [
    drop('source_mac', isNotIn(sourceMac, 'macs')),
    ...(isHeld
      ? [accept(...ownReverseArp, deleteFrom('held', sourceMac)), drop('held', isIn(sourceMac, 'held'))]
      : [accept(...ownReverseArp)]),
    drop('bridge_control', equalsMasked(destinationMac, 'fffffffffff0', '0180c2000000')),
    ...(isTrunk ? [accept(equals(etherType, ETHERTYPE.vlan))] : []),
    ...[ETHERTYPE.vlan, 0x88a8, 0x9100].map((each) => drop('vlan_tag', equals(etherType, each))),
    goTo('from_arp', equals(etherType, ETHERTYPE.arp)),
    goTo('from_ipv4', equals(etherType, ETHERTYPE.ipv4)),
    goTo('from_ipv6', equals(etherType, ETHERTYPE.ipv6)),
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
    accept(...sender, equals(arpOperation, 1), equals(arpSenderIp, ANY_IPV4), isIn(arpTargetIp, 'ipv4')),
    drop('arp_sender'),
  ];
  return { name: 'from_arp', rules };
}

function ipv4Chain(port: GuardedPort): RuleChain {
  const { protocol, sourcePort, destinationPort, ipv4Source, ipv4Destination } = FIELDS;
  const { client, server } = PORTS.dhcp4;
  const toServer = [equals(protocol, PROTOCOL.udp), equals(sourcePort, client), equals(destinationPort, server)];
  const rules = [
    accept(equals(ipv4Source, ANY_IPV4), equals(ipv4Destination, 'ffffffff'), ...toServer),
    drop('ipv4_source', isNotIn(ipv4Source, 'ipv4')),
    ...dhcpServerRules(PORTS.dhcp4),
    drop('multicast_router', equals(protocol, PROTOCOL.igmp), equals(FIELDS.igmpType, IGMP_QUERY)),
    ...virtualRouterRules(port),
    ...acceptParsed(),
  ];
  return { name: 'from_ipv4', rules };
}

function ipv6Chain(port: GuardedPort): RuleChain {
  const { ipv6Source, ipv6NextHeader, fragmentNextHeader, icmpv6Type, neighbourTarget, protocol } = FIELDS;
  const icmp = (type: number) => [equals(protocol, PROTOCOL.icmpv6), equals(icmpv6Type, type)];
  const fragment = equals(ipv6NextHeader, PROTOCOL.fragment);
  const advertised = [equals(ipv6NextHeader, PROTOCOL.icmpv6), equals(icmpv6Type, ICMPV6.neighbour)];
  const rules = [
    goTo('without_source', equals(ipv6Source, ANY_IPV6)),
    drop('ipv6_source', isNotIn(ipv6Source, 'ipv6'), { ...isLinkLocal(ipv6Source), op: '!=' }),
    ...reportRules(),
    drop('extension_header', isIn(ipv6NextHeader, 'extensions')),
    drop('extension_header', fragment, isIn(fragmentNextHeader, 'extensions')),
    drop('extension_header', fragment, equals(fragmentNextHeader, PROTOCOL.fragment)),
    drop('router_advertisement', ...icmp(ICMPV6.advertisement)),
    drop('icmp_redirect', ...icmp(REDIRECT)),
    drop('multicast_router', ...icmp(ICMPV6.query)),
    drop('multicast_router', ...icmp(MULTICAST_ROUTER)),
    // RFC 6980: neighbour discovery is never fragmented
    drop(
      'neighbour_target',
      fragment,
      equals(protocol, PROTOCOL.icmpv6),
      ...between(icmpv6Type, ICMPV6.routerSolicitation, ICMPV6.neighbour),
    ),
    accept(...advertised, isIn(neighbourTarget, 'ipv6')),
    accept(...advertised, isLinkLocal(neighbourTarget)),
    drop('neighbour_target', ...icmp(ICMPV6.neighbour)),
    ...dhcpServerRules(PORTS.dhcp6),
    ...virtualRouterRules(port),
    ...acceptParsed(),
  ];
  return { name: 'from_ipv6', rules };
}

/** Without a source address, an interface may detect duplicates of its own addresses, find routers and join groups. */
function withoutSourceChain(): RuleChain {
  const { ipv6NextHeader, icmpv6Type, neighbourTarget } = FIELDS;
  const direct = equals(ipv6NextHeader, PROTOCOL.icmpv6);
  const solicitation = [direct, equals(icmpv6Type, ICMPV6.solicitation)];
  const rules = [
    accept(...solicitation, isIn(neighbourTarget, 'ipv6')),
    accept(...solicitation, isLinkLocal(neighbourTarget)),
    accept(direct, equals(icmpv6Type, ICMPV6.routerSolicitation)),
    ...reportRules(),
    drop('ipv6_source'),
  ];
  return { name: 'without_source', rules };
}

/** A multicast report has one hop-by-hop header of eight bytes (RFC 3810, section 5), and nothing else is accepted with one. */
function reportRules(): Rule[] {
  const { ipv6NextHeader, hopByHopNextHeader, hopByHopLength, protocol, icmpv6Type } = FIELDS;
  const report = [
    equals(ipv6NextHeader, PROTOCOL.hopByHop),
    equals(hopByHopNextHeader, PROTOCOL.icmpv6),
    equals(hopByHopLength, 0),
    equals(protocol, PROTOCOL.icmpv6),
  ];
  return [
    accept(...report, ...between(icmpv6Type, REPORTS.first, REPORTS.last)),
    accept(...report, equals(icmpv6Type, REPORTS.version2)),
  ];
}

/** Clients read answers from any source port, and servers may answer other servers. */
function dhcpServerRules({ client, server }: { readonly client: number; readonly server: number }): Rule[] {
  const udp = equals(FIELDS.protocol, PROTOCOL.udp);
  return [
    drop('dhcp_server', udp, equals(FIELDS.sourcePort, server)),
    drop('dhcp_server', udp, equals(FIELDS.destinationPort, client)),
  ];
}

/** With VRRP or CARP a guest could take over from the routers of the network. Those who share an address need it. */
function virtualRouterRules({ allowed }: GuardedPort): Rule[] {
  return allowed.addresses.length > 0 ? [] : [drop('virtual_router', equals(FIELDS.protocol, PROTOCOL.vrrp))];
}

/** The protocol is known only of packets whose headers the kernel could parse. Of others, no rule above has seen ports or types. */
function acceptParsed(): Rule[] {
  return [accept({ ...equals(FIELDS.protocol, 0), op: '>=' }), drop('malformed')];
}

function isLinkLocal(of: (typeof FIELDS)[keyof typeof FIELDS]): Match {
  return equalsMasked(of, `ffc0${'0'.repeat(28)}`, `fe80${'0'.repeat(28)}`);
}

function accept(...matches: readonly Match[]): Rule {
  return { matches, verdict: 'accept' };
}

function drop(counts: DropReason, ...matches: readonly Match[]): Rule {
  return { matches, counts, verdict: 'drop' };
}

function goTo(chain: string, ...matches: readonly Match[]): Rule {
  return { matches, verdict: `goto ${chain}` };
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
