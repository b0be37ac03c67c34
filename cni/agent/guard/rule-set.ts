/** The rules of a guard as data, for the nftables of one port. The plugin translates them and adds nothing. */
export interface RuleSet {
  /** With `Enforce` an interface without the rules fails; with `Observe` it is only reported. */
  readonly mode: 'Observe' | 'Enforce';
  readonly sets: readonly RuleSetMembers[];
  /** The first one is that of the port. The others are reached from it. */
  readonly chains: readonly RuleChain[];
}

/** Stands for the MAC address of the pod's interface, which only the plugin knows. */
export const OWN_MAC = 'interface';

export interface RuleSetMembers {
  readonly name: string;
  readonly type: 'ether_addr' | 'ipv4_addr' | 'ipv6_addr' | 'inet_proto';
  /** Hexadecimal digits, `first-last`, or {@link OWN_MAC}. */
  readonly elements: readonly string[];
  /** Elements are ranges. */
  readonly isInterval?: boolean;
  /** Elements leave the set after this time, or when a rule deletes them. */
  readonly timeoutSeconds?: number;
}

export interface RuleChain {
  readonly name: string;
  readonly rules: readonly Rule[];
}

export interface Rule {
  /** All must hold. A frame that is too short for one of them does not match. */
  readonly matches: readonly Match[];
  /** Name of the counter. */
  readonly counts?: DropReason;
  readonly verdict: 'accept' | 'drop' | `goto ${string}`;
}

/** A field of a frame. */
export interface Field {
  /** As nft writes it. */
  readonly name: string;
  /** The header in which it is; `l4proto`: the protocol after all IPv6 extension headers, of frames that the kernel could parse. */
  readonly header: 'link' | 'network' | 'transport' | 'l4proto';
  /** In bytes. */
  readonly offset: number;
  readonly length: number;
}

/** The comparison of a field with a value or a set. `delete` removes it from the set and always holds. */
export interface Match extends Field {
  readonly mask?: string;
  readonly op: '==' | '!=' | '>=' | '<=' | 'in' | 'not in' | 'delete';
  /** Hexadecimal digits, {@link OWN_MAC}, or the name of the set. */
  readonly value: string;
}

/** Why a frame is not of the claim. Names of counters. */
export type DropReason =
  | 'source_mac'
  | 'held'
  | 'bridge_control'
  | 'vlan_tag'
  | 'ethertype'
  | 'arp_sender'
  | 'ipv4_source'
  | 'ipv6_source'
  | 'dhcp_server'
  | 'router_advertisement'
  | 'icmp_redirect'
  | 'neighbour_target'
  | 'extension_header'
  | 'multicast_router'
  | 'virtual_router'
  | 'malformed';

export const ETHERTYPE = { ipv4: 0x0800, arp: 0x0806, reverseArp: 0x8035, vlan: 0x8100, ipv6: 0x86dd };

function field(name: string, header: Field['header'], offset: number, length: number): Field {
  return { name, header, offset, length };
}

/** The fields that the rules read. Those without a name in nft are written as header, bit and length. */
export const FIELDS = {
  destinationMac: field('ether daddr', 'link', 0, 6),
  sourceMac: field('ether saddr', 'link', 6, 6),
  /** Of a frame with a VLAN tag that of the tag, also if the kernel has taken the tag off. */
  etherType: field('ether type', 'link', 12, 2),
  /** After the type of a VLAN tag: priority and VLAN. */
  vlanTag: field('@ll,112,16', 'link', 14, 2),
  /** Hardware and protocol type, and the lengths of their addresses. */
  arpTypes: field('@nh,0,48', 'network', 0, 6),
  arpOperation: field('arp operation', 'network', 6, 2),
  arpSenderMac: field('arp saddr ether', 'network', 8, 6),
  arpSenderIp: field('arp saddr ip', 'network', 14, 4),
  arpTargetIp: field('arp daddr ip', 'network', 24, 4),
  /** After the flags. */
  ipv4Fragment: field('ip frag-off', 'network', 6, 2),
  ipv4Protocol: field('ip protocol', 'network', 9, 1),
  ipv4Source: field('ip saddr', 'network', 12, 4),
  ipv4Destination: field('ip daddr', 'network', 16, 4),
  /** Of all that follows the IPv6 header. */
  ipv6Length: field('ip6 length', 'network', 4, 2),
  ipv6NextHeader: field('ip6 nexthdr', 'network', 6, 1),
  ipv6Source: field('ip6 saddr', 'network', 8, 16),
  /** Of an extension header that follows directly after the IPv6 header. */
  fragmentNextHeader: field('frag nexthdr', 'network', 40, 1),
  hopByHopNextHeader: field('hbh nexthdr', 'network', 40, 1),
  hopByHopLength: field('hbh hdrlength', 'network', 41, 1),
  protocol: field('meta l4proto', 'l4proto', 0, 1),
  icmpv6Type: field('icmpv6 type', 'transport', 0, 1),
  /** The target of a neighbour solicitation or advertisement. */
  neighbourTarget: field('icmpv6 taddr', 'transport', 8, 16),
  /** Kind and length of the first option of neighbour solicitations and advertisements, and a MAC address in it. */
  neighbourOption: field('@th,192,16', 'transport', 24, 2),
  neighbourOptionMac: field('@th,208,48', 'transport', 26, 6),
  /** The same of router solicitations. */
  routerOption: field('@th,64,16', 'transport', 8, 2),
  routerOptionMac: field('@th,80,48', 'transport', 10, 6),
  icmpType: field('icmp type', 'transport', 0, 1),
  igmpType: field('igmp type', 'transport', 0, 1),
  sourcePort: field('th sport', 'transport', 0, 2),
  destinationPort: field('th dport', 'transport', 2, 2),
} as const satisfies Record<string, Field>;

/** A key that all frames have. */
export const EVERY_FRAME = { ...FIELDS.sourceMac, mask: '000000000000' } as const;

export function equals(of: Field, value: number | string): Match {
  return { ...of, op: '==', value: hexOf(value, of.length) };
}

export function notEquals(of: Field, value: number): Match {
  return { ...equals(of, value), op: '!=' };
}

/** @param mask hexadecimal digits; the other bits may have any value */
export function equalsMasked(of: Field, mask: string, value: string): Match {
  return { ...of, mask, op: '==', value };
}

export function between(
  of: Field & Pick<Match, 'mask'>,
  least: number | bigint,
  most: number | bigint,
): readonly [Match, Match] {
  return [
    { ...of, op: '>=', value: hexOf(least, of.length) },
    { ...of, op: '<=', value: hexOf(most, of.length) },
  ];
}

export function isIn(of: Field & Pick<Match, 'mask'>, set: string): Match {
  return { ...of, op: 'in', value: set };
}

export function isNotIn(of: Field, set: string): Match {
  return { ...of, op: 'not in', value: set };
}

export function deleteFrom(set: string, of: Field & Pick<Match, 'mask'>): Match {
  return { ...of, op: 'delete', value: set };
}

export function accept(...matches: readonly Match[]): Rule {
  return { matches, verdict: 'accept' };
}

export function drop(counts: DropReason, ...matches: readonly Match[]): Rule {
  return { matches, counts, verdict: 'drop' };
}

export function goTo(chain: string, ...matches: readonly Match[]): Rule {
  return { matches, verdict: `goto ${chain}` };
}

/** Returns hexadecimal digits for so many bytes. */
export function hexOf(value: number | bigint | string, bytes: number): string {
  return typeof value === 'string' ? value : value.toString(16).padStart(bytes * 2, '0');
}
