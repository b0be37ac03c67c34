/** Builds frames of a segment, from their Ethernet header on. */

export const BROADCAST = 'ff:ff:ff:ff:ff:ff';

export interface EthernetFields {
  readonly from: string;
  /** All hosts, by default. */
  readonly to?: string;
  readonly type: number;
  readonly body: Buffer;
}

/** @param trailer stands after the body, where no protocol reads it */
export function ethernet({ from, to = BROADCAST, type, body }: EthernetFields, trailer = ''): Buffer {
  const frame = Buffer.concat([macBytes(to), macBytes(from), uint16(type), body]);
  const padding = Buffer.alloc(Math.max(0, 60 - frame.length - trailer.length));
  return Buffer.concat([frame, padding, Buffer.from(trailer)]);
}

export interface ArpFields {
  readonly operation: 'request' | 'reply';
  readonly mac: string;
  readonly ip: string;
  readonly targetMac?: string;
  readonly targetIp: string;
}

/** The body of an ARP message of the type 0x0806. */
export function arp({ operation, mac, ip, targetMac = '00:00:00:00:00:00', targetIp }: ArpFields): Buffer {
  const head = Buffer.from(`000108000604000${operation === 'request' ? '1' : '2'}`, 'hex');
  return Buffer.concat([head, macBytes(mac), ipBytes(ip), macBytes(targetMac), ipBytes(targetIp)]);
}

/** Asks for the IPv4 address of a MAC address (RFC 903), as QEMU does for a guest that has moved: switches learn its port. */
export function reverseArp(mac: string, from = mac): EthernetFields {
  const none = Buffer.alloc(4);
  const head = Buffer.from('0001080006040003', 'hex');
  return { from, type: 0x8035, body: Buffer.concat([head, macBytes(mac), none, macBytes(mac), none]) };
}

/** A body with a tag before it: nested ones are the tags of several switches. */
export function tagged(type: number, body: Buffer, vlan: number): Buffer {
  return Buffer.concat([uint16(vlan), uint16(type), body]);
}

/** The body of a frame whose type is its length (IEEE 802.2), for instance of spanning tree. */
export function llc(dsap: number, payload: Buffer): Buffer {
  return Buffer.concat([Buffer.from([dsap, dsap, 0x03]), payload]);
}

export interface IpFields {
  readonly source: string;
  readonly target: string;
  /** The next header of the last header here. */
  readonly protocol: number;
  readonly payload: Buffer;
  /** In units of 8 bytes. */
  readonly fragmentOffset?: number;
  readonly moreFragments?: boolean;
}

export function ipv4(fields: IpFields): Buffer {
  const { source, target, protocol, payload, fragmentOffset = 0, moreFragments = false } = fields;
  const head = Buffer.from('450000000001000040000000', 'hex');
  head.writeUInt16BE(20 + payload.length, 2);
  head.writeUInt16BE((moreFragments ? 0x2000 : 0) | fragmentOffset, 6);
  head[9] = protocol;
  const header = Buffer.concat([head, ipBytes(source), ipBytes(target)]);
  header.writeUInt16BE(checksum(header), 10);
  return Buffer.concat([header, payload]);
}

/** @param extensions headers before the payload, each with the number of the header that it is, and all but its first byte */
export function ipv6(fields: IpFields, extensions: readonly Extension[] = []): Buffer {
  const { source, target, protocol, payload } = fields;
  const chain = [...extensions.map(({ header }) => header), protocol];
  const headers = extensions.map(({ rest }, index) => Buffer.concat([Buffer.from([chain[index + 1]!]), rest]));
  const body = Buffer.concat([...headers, payload]);
  const head = Buffer.from('60000000000000ff', 'hex');
  head.writeUInt16BE(body.length, 4);
  head[6] = chain[0]!;
  return Buffer.concat([head, ipBytes(source), ipBytes(target), body]);
}

export interface Extension {
  readonly header: number;
  readonly rest: Buffer;
}

/** Eight bytes of options that say nothing: a hop-by-hop (0), routing (43) or destination (60) header. */
export function emptyOptions(header: 0 | 60): Extension {
  return { header, rest: Buffer.from('00010400000000', 'hex') };
}

/** Of MLD: routers must look at it. */
export const ROUTER_ALERT: Extension = { header: 0, rest: Buffer.from('00050200000100', 'hex') };

/** @param offset in units of 8 bytes */
export function fragmentHeader(offset: number, more: boolean): Extension {
  const rest = Buffer.from('00000000000001', 'hex');
  rest.writeUInt16BE((offset << 3) | (more ? 1 : 0), 1);
  return { header: 44, rest };
}

export function udp(from: number, to: number, payload = Buffer.alloc(8)): Buffer {
  return Buffer.concat([uint16(from), uint16(to), uint16(8 + payload.length), uint16(0), payload]);
}

/** @param rest of the message, after its checksum */
export function icmp(type: number, rest: Buffer, code = 0): Buffer {
  const message = Buffer.concat([Buffer.from([type, code, 0, 0]), rest]);
  message.writeUInt16BE(checksum(message), 2);
  return message;
}

export function icmpv6(source: string, target: string, type: number, rest: Buffer): Buffer {
  const message = Buffer.concat([Buffer.from([type, 0, 0, 0]), rest]);
  const pseudo = Buffer.concat([ipBytes(source), ipBytes(target), Buffer.alloc(2), uint16(message.length), uint16(58)]);
  message.writeUInt16BE(checksum(Buffer.concat([pseudo, message])), 2);
  return message;
}

/** An option of NDP that names a MAC address: 1 of the source, 2 of the target. */
export function macOption(kind: 1 | 2, mac: string): Buffer {
  return Buffer.concat([Buffer.from([kind, 1]), macBytes(mac)]);
}

export function ipBytes(ip: string): Buffer {
  if (!ip.includes(':')) return Buffer.from(ip.split('.').map(Number));
  const [before = '', after] = ip.split('::');
  const groups = (part = '') => part.split(':').filter(Boolean);
  const missing = after === undefined ? 0 : 8 - groups(before).length - groups(after).length;
  const all = [...groups(before), ...Array.from({ length: missing }, () => '0'), ...groups(after)];
  return Buffer.concat(all.map((group) => uint16(Number.parseInt(group, 16))));
}

/** The address that a kernel forms of a MAC address by itself (RFC 4291, appendix A). */
export function linkLocalOf(mac: string): string {
  const bytes = macBytes(mac);
  bytes[0]! ^= 2;
  const groups = [
    bytes.subarray(0, 2),
    Buffer.from([bytes[2]!, 0xff]),
    Buffer.from([0xfe, bytes[3]!]),
    bytes.subarray(4),
  ];
  return `fe80::${groups.map((group) => group.readUInt16BE().toString(16)).join(':')}`;
}

function macBytes(mac: string): Buffer {
  return Buffer.from(mac.replaceAll(':', ''), 'hex');
}

function uint16(value: number): Buffer {
  const bytes = Buffer.alloc(2);
  bytes.writeUInt16BE(value);
  return bytes;
}

/** Of the Internet protocols (RFC 1071). */
function checksum(data: Buffer): number {
  let sum = 0;
  for (let at = 0; at < data.length; at += 2) sum += (data[at]! << 8) | (data[at + 1] ?? 0);
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  return ~sum & 0xffff;
}
