import * as frames from '../frames.js';
import { type EthernetFields, icmp, icmpv6, ipBytes, ipv4, ipv6, linkLocalOf, macOption, udp } from '../frames.js';

/** An interface on a segment, with one address of each family. */
export interface SegmentHost {
  readonly mac: string;
  readonly ipv4: string;
  readonly ipv6: string;
}

/** @param me the hostile guest @param other a neighbour */
type Attack = (me: SegmentHost, other: SegmentHost) => EthernetFields;

const TYPE = {
  arp: 0x0806,
  ipv4: 0x0800,
  ipv6: 0x86dd,
  vlan: 0x8100,
  serviceVlan: 0x88a8,
  mpls: 0x8847,
  unknown: 0x88b5,
};
const PROTOCOL = { icmp: 1, igmp: 2, udp: 17, icmpv6: 58, pim: 103, vrrp: 112 };
const NDP = {
  listenerQuery: 130,
  routerSolicitation: 133,
  router: 134,
  solicitation: 135,
  advertisement: 136,
  redirect: 137,
};
const EVERYBODY = '255.255.255.255';
const ALL_NODES = { ip: 'ff02::1', mac: '33:33:00:00:00:01' };
const UNKNOWN_MAC = '02:de:ad:00:00:01';
const VIRTUAL_ROUTER = '00:00:5e:00:01:01';
/** Flags of an advertisement: override what you know. */
const OVERRIDE = Buffer.from('20000000', 'hex');
const ROUTER = Buffer.from('400007080000000000000000', 'hex');
const OTHER_VLAN = 200;

const ARP_ATTACKS: Readonly<Record<string, Attack>> = {
  'ARP request from the address of a neighbour': (me, other) =>
    inArp(me, 'request', { mac: me.mac, ip: other.ipv4 }, me.ipv4),
  'ARP reply for the address of a neighbour': (me, other) =>
    inArp(me, 'reply', { mac: me.mac, ip: other.ipv4 }, me.ipv4),
  'gratuitous ARP for the address of a neighbour': (me, other) =>
    inArp(me, 'request', { mac: me.mac, ip: other.ipv4 }, other.ipv4),
  'ARP for the own address at the MAC address of a neighbour': (me, other) =>
    inArp(me, 'reply', { mac: other.mac, ip: me.ipv4 }, me.ipv4),
  'ARP in a frame of a neighbour': (me, other) =>
    inArp({ mac: other.mac }, 'request', { mac: me.mac, ip: me.ipv4 }, other.ipv4),
  'reverse ARP of a neighbour': (_me, other) => frames.reverseArp(other.mac),
  'reverse ARP of a neighbour in an own frame': (me, other) => frames.reverseArp(other.mac, me.mac),
  'an answer to a reverse ARP': (me) => {
    const { body, ...frame } = frames.reverseArp(me.mac);
    return { ...frame, body: Buffer.concat([body.subarray(0, 7), Buffer.from([4]), body.subarray(8)]) };
  },
};

const IPV4_ATTACKS: Readonly<Record<string, Attack>> = {
  'IPv4 from the address of a neighbour': (me, other) => inIpv4(me, other.ipv4, udp(9, 9)),
  'IPv4 from an unknown address': (me) => inIpv4(me, '203.0.113.7', udp(9, 9)),
  'IPv4 from no address, which is not DHCP': (me) => inIpv4(me, '0.0.0.0', udp(9, 9)),
  'the first fragment of a neighbour': (me, other) => inIpv4(me, other.ipv4, udp(9, 9), { moreFragments: true }),
  'a later fragment of a neighbour': (me, other) => inIpv4(me, other.ipv4, Buffer.alloc(16), { fragmentOffset: 2 }),
  'an answer of a DHCP server': (me) => inIpv4(me, me.ipv4, udp(67, 68, Buffer.alloc(240))),
  'an answer of a DHCP server in fragments': (me) =>
    inIpv4(me, me.ipv4, udp(67, 68, Buffer.alloc(240)), { moreFragments: true }),
  'an ICMP redirect': (me) =>
    inIpv4(me, me.ipv4, icmp(5, Buffer.concat([ipBytes(me.ipv4), Buffer.alloc(28)]), 1), { protocol: PROTOCOL.icmp }),
  'a router advertisement of IPv4': (me) => inIpv4(me, me.ipv4, icmp(9, Buffer.alloc(12)), { protocol: PROTOCOL.icmp }),
  'PIM of a multicast router': (me) => ({
    ...inIpv4(me, me.ipv4, icmp(0x20, Buffer.alloc(4)), { protocol: PROTOCOL.pim, target: '224.0.0.13' }),
    to: '01:00:5e:00:00:0d',
  }),
  'an advertisement of a multicast router': (me) => ({
    ...inIpv4(me, me.ipv4, icmp(0x30, Buffer.alloc(4)), { protocol: PROTOCOL.igmp, target: '224.0.0.106' }),
    to: '01:00:5e:00:00:6a',
  }),
  'VRRP of a virtual router': (me) => ({
    ...inIpv4(me, me.ipv4, Buffer.alloc(16), { protocol: PROTOCOL.vrrp, target: '224.0.0.18' }),
    from: VIRTUAL_ROUTER,
    to: '01:00:5e:00:00:12',
  }),
};

const IPV6_ATTACKS: Readonly<Record<string, Attack>> = {
  'IPv6 from the address of a neighbour': (me, other) => inIpv6(me, other.ipv6, udp(9, 9)),
  'IPv6 from an unknown address': (me) => inIpv6(me, '2001:db8::7', udp(9, 9)),
  'UDP from no IPv6 address': (me) => inIpv6(me, '::', udp(9, 9)),
  'a neighbour advertisement for a neighbour': (me, other) => advertisement(me, me.ipv6, other.ipv6, [me.mac]),
  'a neighbour advertisement for the own address at another MAC address': (me, other) =>
    advertisement(me, me.ipv6, me.ipv6, [other.mac]),
  'a neighbour advertisement with a second MAC address': (me, other) =>
    advertisement(me, me.ipv6, me.ipv6, [me.mac, other.mac]),
  'a neighbour advertisement for the link-local address at another MAC address': (me, other) =>
    advertisement(me, linkLocalOf(me.mac), linkLocalOf(me.mac), [other.mac]),
  'a neighbour solicitation from another MAC address': (me, other) =>
    inNdp(
      me,
      me.ipv6,
      NDP.solicitation,
      Buffer.concat([Buffer.alloc(4), ipBytes(other.ipv6), macOption(1, other.mac)]),
    ),
  'a router solicitation from another MAC address': (me, other) =>
    inNdp(me, linkLocalOf(me.mac), NDP.routerSolicitation, Buffer.concat([Buffer.alloc(4), macOption(1, other.mac)])),
  'a neighbour solicitation from a neighbour': (me, other) =>
    inNdp(me, other.ipv6, NDP.solicitation, Buffer.concat([Buffer.alloc(4), ipBytes(me.ipv6), macOption(1, me.mac)])),
  'a router advertisement': (me) => inNdp(me, linkLocalOf(me.mac), NDP.router, ROUTER),
  'a router advertisement behind options for every hop': (me) => hidden(me, [frames.emptyOptions(0)]),
  'a router advertisement behind options for the destination': (me) => hidden(me, [frames.emptyOptions(60)]),
  'a router advertisement in the only fragment': (me) => hidden(me, [frames.fragmentHeader(0, false)]),
  'a router advertisement in the first fragment': (me) => hidden(me, [frames.fragmentHeader(0, true)]),
  'a router advertisement behind options in fragments': (me) =>
    hidden(me, [frames.emptyOptions(60), frames.fragmentHeader(0, true), frames.emptyOptions(60)]),
  'a redirect': (me, other) =>
    inNdp(
      me,
      linkLocalOf(me.mac),
      NDP.redirect,
      Buffer.concat([Buffer.alloc(4), ipBytes(linkLocalOf(me.mac)), ipBytes(other.ipv6)]),
    ),
  'a query of a multicast router': (me) => inNdp(me, linkLocalOf(me.mac), NDP.listenerQuery, Buffer.alloc(20)),
  'an answer of a DHCPv6 server': (me) => inIpv6(me, linkLocalOf(me.mac), udp(547, 546)),
  'an answer of a DHCPv6 server from the claimed address': (me) => inIpv6(me, me.ipv6, udp(547, 546)),
  'UDP from the claimed address behind options for every hop': (me) =>
    inIpv6(me, me.ipv6, udp(9, 9), { extensions: [frames.emptyOptions(0)] }),
  'UDP from the claimed address behind options for the destination': (me) =>
    inIpv6(me, me.ipv6, udp(9, 9), { extensions: [frames.emptyOptions(60)] }),
  'an answer of a DHCPv6 server behind options': (me) =>
    inIpv6(me, linkLocalOf(me.mac), udp(547, 546), { extensions: [frames.emptyOptions(60)] }),
};

const LINK_ATTACKS: Readonly<Record<string, Attack>> = {
  'the MAC address of a neighbour': (me, other) => inIpv4(other, me.ipv4, udp(9, 9)),
  'an unknown MAC address': (me) => inIpv4({ mac: UNKNOWN_MAC }, me.ipv4, udp(9, 9)),
  'spanning tree': ({ mac }) => inLlc(mac, '01:80:c2:00:00:00', 0x42),
  'spanning tree of one VLAN': ({ mac }) => inLlc(mac, '01:00:0c:cc:cc:cd', 0xaa),
  'an old protocol': ({ mac }) => inLlc(mac, frames.BROADCAST, 0xe0),
  'an unknown type': ({ mac }) => ({ from: mac, type: TYPE.unknown, body: Buffer.alloc(46) }),
  MPLS: ({ mac }) => ({ from: mac, type: TYPE.mpls, body: Buffer.alloc(46) }),
  'a tag of another VLAN': (me) => inVlan(me, TYPE.vlan, OTHER_VLAN),
  'a tag of a provider': (me) => inVlan(me, TYPE.serviceVlan, OTHER_VLAN),
  'a tag with a priority only': (me) => inVlan(me, TYPE.vlan, 0),
  'two tags, of which a switch removes the first one': (me) => {
    const { type, body } = inVlan(me, TYPE.vlan, OTHER_VLAN);
    return { from: me.mac, type: TYPE.vlan, body: frames.tagged(type, body, 1) };
  },
  'an ARP of a neighbour in another VLAN': (me, other) => {
    const { type, body } = inArp(me, 'request', { mac: me.mac, ip: other.ipv4 }, other.ipv4);
    return { from: me.mac, type: TYPE.vlan, body: frames.tagged(type, body, OTHER_VLAN) };
  },
};

/** What a hostile guest may send, by name. All targets are groups, because some frames move the neighbour in switches. Without a guard, every frame reaches the neighbours. */
export const ATTACKS: Readonly<Record<string, Attack>> = {
  ...LINK_ATTACKS,
  ...ARP_ATTACKS,
  ...IPV4_ATTACKS,
  ...IPV6_ATTACKS,
};

function inArp(
  { mac }: Pick<SegmentHost, 'mac'>,
  operation: 'request' | 'reply',
  sender: { readonly mac: string; readonly ip: string },
  targetIp: string,
): EthernetFields {
  return { from: mac, type: TYPE.arp, body: frames.arp({ operation, ...sender, targetIp }) };
}

function inIpv4(
  { mac }: Pick<SegmentHost, 'mac'>,
  source: string,
  payload: Buffer,
  more: Partial<frames.IpFields> = {},
): EthernetFields {
  return {
    from: mac,
    type: TYPE.ipv4,
    body: ipv4({ source, target: EVERYBODY, protocol: PROTOCOL.udp, payload, ...more }),
  };
}

interface Headers {
  /** UDP by default. */
  readonly protocol?: number;
  readonly extensions?: readonly frames.Extension[];
}

function inIpv6(
  { mac }: Pick<SegmentHost, 'mac'>,
  source: string,
  payload: Buffer,
  { protocol = PROTOCOL.udp, extensions }: Headers = {},
): EthernetFields {
  const body = ipv6({ source, target: ALL_NODES.ip, protocol, payload }, extensions);
  return { from: mac, to: ALL_NODES.mac, type: TYPE.ipv6, body };
}

function inNdp(me: SegmentHost, source: string, type: number, rest: Buffer): EthernetFields {
  return inIpv6(me, source, icmpv6(source, ALL_NODES.ip, type, rest), { protocol: PROTOCOL.icmpv6 });
}

function advertisement(me: SegmentHost, source: string, target: string, macs: readonly string[]): EthernetFields {
  const options = macs.map((mac) => macOption(2, mac));
  return inNdp(me, source, NDP.advertisement, Buffer.concat([OVERRIDE, ipBytes(target), ...options]));
}

function hidden(me: SegmentHost, extensions: readonly frames.Extension[]): EthernetFields {
  const source = linkLocalOf(me.mac);
  const message = icmpv6(source, ALL_NODES.ip, NDP.router, ROUTER);
  return inIpv6(me, source, message, { protocol: PROTOCOL.icmpv6, extensions });
}

function inLlc(from: string, to: string, dsap: number): EthernetFields {
  const body = frames.llc(dsap, Buffer.alloc(35));
  return { from, to, type: body.length, body };
}

/** A frame that the guest might send without a tag. */
function inVlan(me: SegmentHost, type: number, vlan: number): EthernetFields {
  const inner = inIpv4(me, me.ipv4, udp(9, 9));
  return { from: me.mac, type, body: frames.tagged(inner.type, inner.body, vlan) };
}
