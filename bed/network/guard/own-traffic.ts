import * as frames from '../frames.js';
import { type EthernetFields, icmpv6, ipBytes, ipv4, ipv6, linkLocalOf, macOption, udp } from '../frames.js';
import type { SegmentHost } from './attacks.js';

const TYPE = { arp: 0x0806, ipv4: 0x0800, ipv6: 0x86dd };
const UDP = 17;
const IGMP = 2;
const ICMPV6 = 58;
const ALL_NODES = { ip: 'ff02::1', mac: '33:33:00:00:00:01' };
const ALL_ROUTERS = { ip: 'ff02::2', mac: '33:33:00:00:00:02' };
const OVERRIDE = Buffer.from('20000000', 'hex');

/** What the kernel and the programs of a guest send with its own addresses, by name. A guard passes all of it. */
export const OWN_TRAFFIC: Readonly<Record<string, (me: SegmentHost, other: SegmentHost) => EthernetFields>> = {
  'a reverse ARP': (me) => frames.reverseArp(me.mac),
  'an ARP request': (me, other) => ownArp(me, me.ipv4, other.ipv4),
  'an ARP reply': (me, other) => ({
    ...ownArp(me, me.ipv4, other.ipv4),
    body: frames.arp({ operation: 'reply', mac: me.mac, ip: me.ipv4, targetMac: other.mac, targetIp: other.ipv4 }),
  }),
  'a gratuitous ARP': (me) => ownArp(me, me.ipv4, me.ipv4),
  'an ARP probe of the own address': (me) => ownArp(me, '0.0.0.0', me.ipv4),
  'a DHCP request': (me) => inUdp4(me, '255.255.255.255', udp(68, 67, Buffer.alloc(240)), { source: '0.0.0.0' }),
  'a renewal by DHCP': (me, other) => inUdp4(me, other.ipv4, udp(68, 67, Buffer.alloc(240))),
  'IPv4 to a neighbour': (me, other) => inUdp4(me, other.ipv4, udp(9, 9)),
  'the first fragment of IPv4': (me, other) =>
    inUdp4(me, other.ipv4, udp(9, 9, Buffer.alloc(64)), { moreFragments: true }),
  'the last fragment of IPv4': (me, other) => inUdp4(me, other.ipv4, Buffer.alloc(64), { fragmentOffset: 9 }),
  'an IGMP report': ({ mac, ipv4: own }) => ({
    from: mac,
    to: '01:00:5e:00:00:16',
    type: TYPE.ipv4,
    body: ipv4({
      source: own,
      target: '224.0.0.22',
      protocol: IGMP,
      payload: frames.icmp(0x22, Buffer.from('00000001', 'hex')),
    }),
  }),
  'a probe for the own IPv6 address': (me) => ndp(me, '::', [135, Buffer.concat([Buffer.alloc(4), ipBytes(me.ipv6)])]),
  'a probe for the own link-local address': (me) =>
    ndp(me, '::', [135, Buffer.concat([Buffer.alloc(4), ipBytes(linkLocalOf(me.mac))])]),
  'a neighbour solicitation': (me, other) =>
    ndp(me, me.ipv6, [135, Buffer.concat([Buffer.alloc(4), ipBytes(other.ipv6), macOption(1, me.mac)])]),
  'a neighbour advertisement': (me) =>
    ndp(me, me.ipv6, [136, Buffer.concat([OVERRIDE, ipBytes(me.ipv6), macOption(2, me.mac)])]),
  'a neighbour advertisement of the link-local address': (me) =>
    ndp(me, linkLocalOf(me.mac), [136, Buffer.concat([OVERRIDE, ipBytes(linkLocalOf(me.mac)), macOption(2, me.mac)])]),
  'a router solicitation': (me) =>
    ndp(me, linkLocalOf(me.mac), [133, Buffer.concat([Buffer.alloc(4), macOption(1, me.mac)])], ALL_ROUTERS),
  'a router solicitation without an address': (me) => ndp(me, '::', [133, Buffer.alloc(4)], ALL_ROUTERS),
  'an MLD report': (me) => mldReport(me, linkLocalOf(me.mac)),
  'an MLD report without an address': (me) => mldReport(me, '::'),
  'a DHCPv6 request': (me) =>
    inIpv6(me, linkLocalOf(me.mac), udp(546, 547), { to: { ip: 'ff02::1:2', mac: '33:33:00:01:00:02' } }),
  'IPv6 to a neighbour': (me, other) => inIpv6(me, me.ipv6, udp(9, 9), { to: targetOf(other) }),
  'IPv6 from the link-local address': (me) => inIpv6(me, linkLocalOf(me.mac), udp(9, 9), { to: ALL_NODES }),
  'the first fragment of IPv6': (me, other) =>
    fragment(me, other, udp(9, 9, Buffer.alloc(64)), frames.fragmentHeader(0, true)),
  'the last fragment of IPv6': (me, other) => fragment(me, other, Buffer.alloc(64), frames.fragmentHeader(9, false)),
};

interface Target {
  readonly ip: string;
  readonly mac: string;
}

function targetOf({ ipv6: ip, mac }: SegmentHost): Target {
  return { ip, mac };
}

function ownArp({ mac }: SegmentHost, ip: string, targetIp: string): EthernetFields {
  return { from: mac, type: TYPE.arp, body: frames.arp({ operation: 'request', mac, ip, targetIp }) };
}

function inUdp4(
  { mac, ipv4: source }: SegmentHost,
  target: string,
  payload: Buffer,
  more: Partial<frames.IpFields> = {},
): EthernetFields {
  return { from: mac, type: TYPE.ipv4, body: ipv4({ source, target, protocol: UDP, payload, ...more }) };
}

interface Headers {
  readonly to: Target;
  /** UDP by default. */
  readonly protocol?: number;
  readonly extensions?: readonly frames.Extension[];
}

function inIpv6({ mac }: SegmentHost, source: string, payload: Buffer, headers: Headers): EthernetFields {
  const { to, protocol = UDP, extensions } = headers;
  return {
    from: mac,
    to: to.mac,
    type: TYPE.ipv6,
    body: ipv6({ source, target: to.ip, protocol, payload }, extensions),
  };
}

function ndp(
  me: SegmentHost,
  source: string,
  [type, rest]: readonly [number, Buffer],
  to: Target = ALL_NODES,
): EthernetFields {
  return inIpv6(me, source, icmpv6(source, to.ip, type, rest), { to, protocol: ICMPV6 });
}

/** A report that the guest listens to one group (RFC 3810). */
function mldReport(me: SegmentHost, source: string): EthernetFields {
  const to = { ip: 'ff02::16', mac: '33:33:00:00:00:16' };
  const rest = Buffer.concat([Buffer.from('0000000104000000', 'hex'), ipBytes('ff02::fb')]);
  return inIpv6(me, source, icmpv6(source, to.ip, 143, rest), {
    to,
    protocol: ICMPV6,
    extensions: [frames.ROUTER_ALERT],
  });
}

function fragment(me: SegmentHost, other: SegmentHost, payload: Buffer, header: frames.Extension): EthernetFields {
  return inIpv6(me, me.ipv6, payload, { to: targetOf(other), extensions: [header] });
}
