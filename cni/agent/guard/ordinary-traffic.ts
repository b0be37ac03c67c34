import { PORTS, PROTOCOL } from './ip-rules.js';
import {
  type Field,
  type Match,
  type Rule,
  type RuleSetMembers,
  ETHERTYPE,
  FIELDS,
  accept,
  equals,
  isIn,
  notEquals,
} from './rule-set.js';

const WORD = 4;
const NONE = { elements: [] };

/**
 * Returns rules for TCP and UDP of the claim, which are most of what a guest sends. They come first, and accept nothing that the other
 * rules would drop. What reads the link layer or looks into a set takes the kernel ten times as long as a comparison of up to four bytes
 * of another header, so it comes last. Ports are read only of packets that the kernel could parse.
 */
export function ordinaryTraffic(sets: readonly RuleSetMembers[]): Rule[] {
  const isMember = (of: Field, name: string) => isElement(of, name, sets.find((set) => set.name === name) ?? NONE);
  // one read for both would pass tagged frames on kernels that then show the type behind the tag
  const link = (type: number) => [...isMember(FIELDS.sourceMac, 'macs'), equals(FIELDS.etherType, type)];
  const ipv4 = {
    ...{ protocol: FIELDS.ipv4Protocol, source: isMember(FIELDS.ipv4Source, 'ipv4') },
    ...{ dhcp: PORTS.dhcp4, link: link(ETHERTYPE.ipv4) },
  };
  const ipv6 = {
    ...{ protocol: FIELDS.ipv6NextHeader, source: isMember(FIELDS.ipv6Source, 'ipv6') },
    ...{ dhcp: PORTS.dhcp6, link: link(ETHERTYPE.ipv6) },
  };
  return [ipv4, ipv6].filter(({ source }) => source.length > 0).flatMap(tcpAndUdp);
}

function tcpAndUdp({ protocol, source, dhcp, link }: FamilyMatches): Rule[] {
  const { sourcePort, destinationPort } = FIELDS;
  const isNoServer = [notEquals(sourcePort, dhcp.server), notEquals(destinationPort, dhcp.client)];
  return [
    accept(equals(protocol, PROTOCOL.tcp), ...source, notEquals(sourcePort, 0), ...link),
    accept(equals(protocol, PROTOCOL.udp), ...source, ...isNoServer, ...link),
  ];
}

interface FamilyMatches {
  readonly protocol: Field;
  readonly source: readonly Match[];
  readonly dhcp: { readonly client: number; readonly server: number };
  readonly link: readonly Match[];
}

/** Compares with the only element of a set word by word. A MAC address is one word, because it is read as one. @returns nothing if the set is empty */
function isElement(
  of: Field,
  name: string,
  { elements: [only, ...more], isInterval }: Pick<RuleSetMembers, 'elements' | 'isInterval'>,
): Match[] {
  if (only === undefined) return [];
  if (more.length > 0 || isInterval === true) return [isIn(of, name)];
  if (of.length <= WORD || of.header === 'link') return [equals(of, only)];
  return Array.from({ length: of.length / WORD }, (_, at) => {
    const offset = of.offset + at * WORD;
    const word = { ...of, name: `@nh,${offset * 8},${WORD * 8}`, offset, length: WORD };
    return equals(word, only.slice(at * WORD * 2, (at + 1) * WORD * 2));
  });
}
