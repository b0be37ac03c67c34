import { type Address, formatAddress, parseAddress } from '../../addressing/address/address.js';
import { formatCidr } from '../../addressing/address/cidr.js';
import type { Pool } from '../../addressing/pool/pool.js';
import type { BootFile } from '../../addressing/pool/boot-files.js';
import type { DhcpOption } from '../../addressing/pool/dhcp-options.js';
import { asRecord, asString, isRecord, recordsIn } from '../../api/json.js';
import { parseMac } from '../../api/mac-address.js';
import { shortHash } from '../../api/names.js';
import { StringDecoder } from 'node:string_decoder';

/**
 * The protocol between the process `responder` and the packet helper: lines of JSON over a Unix socket. The helper answers guests from the table
 * that it gets, and decides nothing else. `guest/packets/protocol.go` is the other side, and both read `guest/packets/testdata/session.jsonl` in
 * their tests.
 */
export const PROTOCOL_VERSION = 2;

/**
 * The helper's limits: entries in one message, sets of options (of two tables, while one replaces the other), probes at one time, and MAC addresses
 * that one of them expects.
 */
export const MAX_BATCH = 256;
export const MAX_OPTION_SETS = 1024;
export const MAX_PROBES = 256;
export const MAX_EXPECTED = 16;

/** What identifies a responder. */
interface ServerIdentity {
  /** The address from which it answers DHCPv4; null: it answers none. */
  readonly ipv4: string | null;
  /** In hexadecimal (RFC 8415, section 11.5). */
  readonly duid: string;
}

/** Times in seconds. */
export interface HelperConfig {
  readonly v: typeof PROTOCOL_VERSION;
  /** The interface in the pod. */
  readonly interface: string;
  readonly server: ServerIdentity;
  readonly subnets: readonly { readonly cidr: string }[];
  /** The IPv4 addresses of the other responders of the pool, which are no foreign servers. */
  readonly peers: readonly string[];
  /** A client gets the first one that fits. */
  readonly boot?: readonly BootFile[];
  readonly times: {
    readonly renew: number;
    readonly rebind: number;
    readonly lease: number;
    /** Between two router advertisements to one guest. */
    readonly advertise: number;
  };
}

export interface GuestOptionSet {
  /** Named by entries; equal sets have equal names. */
  readonly id: string;
  readonly mtu?: number;
  readonly dns: readonly string[];
  readonly search: readonly string[];
  readonly ntp: readonly string[];
  readonly routes: readonly { readonly destination: string; readonly gateway: string }[];
  /** Other options of DHCPv4, and of DHCPv6. */
  readonly dhcp4?: readonly DhcpOption[];
  readonly dhcp6?: readonly DhcpOption[];
}

/** What a guest gets on one interface. */
export interface TableEntry {
  /** Lower case, with colons. */
  readonly mac: string;
  /** Equal for all interfaces of a VM, which may answer ARP requests for each other. */
  readonly owner?: string;
  /** `router` only on the interface that has the default route. */
  readonly ipv4?: { readonly address: string; readonly prefix: number; readonly router?: string };
  readonly ipv6?: { readonly address: string };
  /** The id of its options. */
  readonly options: string;
  /** A label, and the label with its domain. */
  readonly hostname?: string;
  readonly fqdn?: string;
  /** Options of DHCPv4 of this guest alone. */
  readonly dhcp4?: readonly DhcpOption[];
}

/** A message to the helper. */
export type HelperCommand =
  | { readonly config: HelperConfig }
  | { readonly options: GuestOptionSet }
  | { readonly put: readonly TableEntry[] }
  | { readonly remove: readonly string[] }
  /** The ids of sets of options that no later entry uses. */
  | { readonly forget: readonly string[] }
  /** Entries that are not put between `begin` and `end` are removed. The helper answers no guest before the first `end`. */
  | { readonly snapshot: 'begin' | 'end' }
  /** How long the table may be used as if it were current. */
  | { readonly fresh: { readonly forMs: number } }
  | { readonly probe: WireQuestion };

/** Asks which hosts have an address. The answer is `probed`, or nothing if the helper cannot ask, or asks too much already. */
export interface WireQuestion {
  readonly id: number;
  readonly address: string;
  /** The MAC addresses that may have the address. Any other one ends the probe. */
  readonly expect: readonly string[];
  readonly forMs: number;
}

/**
 * Something that the helper saw on the network:
 * - `declined`: the guest with this MAC address declined its address
 * - `conflict`: this MAC address uses the address of another guest, or of the responder
 * - `server`: another DHCP server, with its address
 * - `router`: a router that offers a default route
 * - `overloaded`: the guest with this MAC address, which has this address, sends too much
 */
export interface WireObservation {
  readonly kind: WireObservationKind;
  readonly mac: string;
  readonly address: string;
}

export const OBSERVATION_KINDS = ['declined', 'conflict', 'server', 'router', 'overloaded'] as const;
export type WireObservationKind = (typeof OBSERVATION_KINDS)[number];

/** What happened since the last such message. */
export interface HelperCounts {
  readonly exchanges: readonly ExchangeCount[];
  /** Packets that were not answered, by reason. */
  readonly dropped: ReadonlyMap<string, number>;
}

interface ExchangeCount {
  readonly protocol: string;
  readonly message: string;
  readonly answer: string;
  readonly count: number;
}

/** A message from the helper. */
export type HelperReport =
  /** The answer to a configuration. `hasAddress`: the kernel has an address on the interface, so the helper answers no guest. */
  | { readonly kind: 'hello'; readonly version: number; readonly mac: string; readonly hasAddress: boolean }
  | { readonly kind: 'seen'; readonly observation: WireObservation }
  | { readonly kind: 'counts'; readonly counts: HelperCounts }
  /** The hosts that have an address: one that was not expected, or all expected ones. */
  | { readonly kind: 'probed'; readonly id: number; readonly macs: readonly string[] };

/** Of one message from the helper. */
export const MAX_REPORT_LENGTH = 64 * 1024;
/** Exchanges, and reasons, in one message. */
const MAX_COUNTS = 128;
const COUNT_NAME = /^[a-z0-9][a-z0-9-]{0,31}$/;

/**
 * Parses a line from the helper, which reads packets of guests and may be taken over by one: nothing in it is trusted.
 * @throws {TypeError} if it is not a message of this protocol
 */
export function readReport(line: string): HelperReport {
  const message = parseObject(line);
  if (isRecord(message.hello)) {
    const { v, mac, address } = message.hello;
    if (typeof v !== 'number') throw new TypeError('hello.v is not a number');
    return { kind: 'hello', version: v, mac: readMac('hello.mac', mac), hasAddress: address === true };
  }
  if (isRecord(message.seen)) return { kind: 'seen', observation: readObservation(message.seen) };
  if (isRecord(message.counts)) return { kind: 'counts', counts: readCounts(message.counts) };
  if (isRecord(message.probed)) return readProbed(message.probed);
  throw new TypeError('a line is neither hello, seen, counts nor probed');
}

function readProbed({ id, macs }: Record<string, unknown>): HelperReport {
  if (!isCount(id)) throw new TypeError('probed.id is not a number');
  if (!Array.isArray(macs) || macs.length > MAX_EXPECTED) throw new TypeError('probed.macs is not a short list');
  return { kind: 'probed', id, macs: macs.map((mac: unknown) => readMac('probed.macs', mac)) };
}

function readObservation({ kind, mac, address }: Record<string, unknown>): WireObservation {
  const known = OBSERVATION_KINDS.find((each) => each === kind);
  if (known === undefined) throw new TypeError('seen.kind is unknown');
  const parsed = parseAddress(asString(address));
  return { kind: known, mac: readMac('seen.mac', mac), address: formatAddress(parsed) };
}

function readCounts({ exchanges, dropped }: Record<string, unknown>): HelperCounts {
  const found = recordsIn(exchanges)
    .slice(0, MAX_COUNTS)
    .flatMap((each) => {
      const [protocol, message, answer] = [each.protocol, each.message, each.answer].map(asString);
      if (protocol === undefined || message === undefined || answer === undefined || !isCount(each.count)) return [];
      const isNamed = [protocol, message, answer].every((name) => COUNT_NAME.test(name));
      return isNamed ? [{ protocol, message, answer, count: each.count }] : [];
    });
  const reasons = Object.entries(asRecord(dropped)).slice(0, MAX_COUNTS);
  const counted = reasons.flatMap(([reason, count]): [string, number][] =>
    COUNT_NAME.test(reason) && isCount(count) ? [[reason, count]] : [],
  );
  return { exchanges: found, dropped: new Map(counted) };
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}

function readMac(field: string, value: unknown): string {
  const mac = parseMac(asString(value).slice(0, 32));
  if (mac === undefined) throw new TypeError(`${field} is not a MAC address`);
  return mac;
}

function parseObject(line: string): Record<string, unknown> {
  try {
    return asRecord(JSON.parse(line));
  } catch {
    throw new TypeError('a line is not JSON');
  }
}

/** DUID-UUID (RFC 6355). */
const DUID_UUID = '0004';
const UUID_DIGITS = 32;
const MAX_ADVERTISE_SECONDS = 1800;

/** A responder of the pool and the addresses that are leased to its claim. */
export interface Responder {
  readonly name: string;
  readonly addresses: readonly Address[];
}

/**
 * Returns the configuration of the packet helper of one responder; undefined if its pool does not let guests use DHCP. The DUID stays the same for
 * all pods of a name, so that guests can renew.
 */
export function helperConfig(
  pool: Pool,
  self: Responder,
  peers: readonly Responder[],
  guestInterface: string,
): HelperConfig | undefined {
  const { dhcp } = pool.guest ?? {};
  if (dhcp === undefined) return undefined;
  const { renewSeconds, rebindSeconds, leaseSeconds, boot } = dhcp;
  return {
    v: PROTOCOL_VERSION,
    interface: guestInterface,
    server: { ipv4: ipv4Of(self) ?? null, duid: `${DUID_UUID}${shortHash(`${pool.uid}\n${self.name}`, UUID_DIGITS)}` },
    subnets: pool.subnets.map(({ cidr }) => ({ cidr: formatCidr(cidr) })),
    peers: peers.flatMap((peer) => ipv4Of(peer) ?? []),
    ...(boot && { boot }),
    times: {
      renew: renewSeconds,
      rebind: rebindSeconds,
      lease: leaseSeconds,
      // as often as guests ask by DHCP, within the bounds of RFC 4861, section 6.2.1
      advertise: Math.min(renewSeconds, MAX_ADVERTISE_SECONDS),
    },
  };
}

function ipv4Of({ addresses }: Responder): string | undefined {
  const found = addresses.find(({ family }) => family === 4);
  return found && formatAddress(found);
}

/** Splits a stream into lines, and passes on each complete one that is not empty. */
export class LineReader {
  readonly #source: string;
  readonly #maxLength: number;
  readonly #take: (line: string) => void;
  readonly #decoder = new StringDecoder('utf8');
  #pending = '';

  /** @param source for errors, with an article */
  constructor(source: string, maxLength: number, take: (line: string) => void) {
    this.#source = source;
    this.#maxLength = maxLength;
    this.#take = take;
  }

  /** @throws {TypeError} if a line is too long */
  push(chunk: Buffer): void {
    const [first = '', ...rest] = this.#decoder.write(chunk).split('\n');
    const last = rest.pop();
    this.#pending += first;
    if (last !== undefined) {
      for (const line of [this.#pending, ...rest]) if (line !== '') this.#take(line);
      this.#pending = last;
    }
    if (this.#pending.length > this.#maxLength)
      throw new TypeError(`a line of ${this.#source} exceeds ${this.#maxLength} characters`);
  }
}
