import { isIPv4 } from 'node:net';
import { omitUndefined } from '../api/json.js';
import type { VirtualMachineInstance, VmDhcpOptions, VmiSpec } from '../api/kubevirt.js';
import type { DhcpOption } from '../addressing/pool/dhcp-options.js';
import { isDomain } from '../addressing/pool/guest.js';

/** What a VM says about DHCP on one of its interfaces. */
export interface VmDhcp {
  /** A label, as KubeVirt names the guest. */
  readonly hostname?: string;
  /** With the subdomain and a dot, before the domain of the network. */
  readonly prefix?: string;
  readonly options: readonly DhcpOption[];
  /** Clauses about what the guest does not get, for its owner. */
  readonly ignored: readonly string[];
}

/** Bytes of the options of one interface, with a code and a length each: `maxEntryOptions` of `guest/packets/protocol.go`. */
export const MAX_DHCP_OPTION_BYTES = 512;
const MAX_VALUE = 255;
/** NTP servers of one interface that are read. An option holds 63. */
export const MAX_NTP_SERVERS = 64;
/** Clauses that are kept for each interface, and shown. The others are counted. */
export const MAX_IGNORED = 8;
const [NTP, TFTP_SERVER, BOOT_FILE] = [42, 66, 67];
const [FIRST_PRIVATE, LAST_PRIVATE, MICROSOFT_ROUTES] = [224, 254, 249];
/** More text than all options may have: it is not kept in memory. */
const MAX_TEXT = 2 * MAX_DHCP_OPTION_BYTES;
const TOO_LONG: VmDhcpOptions = Object.freeze({ bootFileName: ' '.repeat(MAX_DHCP_OPTION_BYTES) });

const LABEL = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/i;

/** Limits what a tenant can keep in memory. Options that are too long in all become one that is too long. */
export function boundedDhcpOptions(options: VmDhcpOptions): VmDhcpOptions {
  const { bootFileName, tftpServerName, ntpServers, privateOptions } = options;
  const known = omitUndefined({
    bootFileName,
    tftpServerName,
    ntpServers,
    privateOptions: privateOptions?.map(({ option, value }) => ({ option, value })),
  });
  return JSON.stringify(known).length > MAX_TEXT ? TOO_LONG : known;
}

/** Reads names and options of a VMI as KubeVirt's DHCP server gives them (KubeVirt 1.8, pkg/network/dhcp/server). Pure. */
export function vmDhcpOf({ metadata, spec = {} }: VirtualMachineInstance, vmNetwork: string): VmDhcp {
  const given = spec.domain?.devices?.interfaces?.find(({ name }) => name === vmNetwork)?.dhcpOptions;
  return { ...namesOf(metadata.name, spec), ...readOptions(given ?? {}) };
}

function namesOf(name: string, { hostname: given, subdomain = '' }: VmiSpec): Pick<VmDhcp, 'hostname' | 'prefix'> {
  const hostname = given || (name.split('.')[0] ?? '').slice(0, 63).replace(/-+$/, '');
  if (!LABEL.test(hostname)) return {};
  return { hostname, prefix: isDomain(subdomain) ? `${hostname}.${subdomain}` : hostname };
}

function readOptions(given: VmDhcpOptions): { options: DhcpOption[]; ignored: string[] } {
  if (given.bootFileName === TOO_LONG.bootFileName)
    return { options: [], ignored: [`all of them together are longer than ${MAX_TEXT} characters`] };
  const options = new Map<number, DhcpOption>();
  const ignored = new IgnoredClauses();
  let bytes = 0;
  const add = (field: string, code: number, value: Buffer): void => {
    if (value.length === 0) return;
    if (options.has(code)) ignored.add(`${field} is there twice`);
    else if (value.length > MAX_VALUE) ignored.add(`${field} is longer than ${MAX_VALUE} bytes`);
    else if (bytes + 2 + value.length > MAX_DHCP_OPTION_BYTES)
      ignored.add(`${field} makes all longer than ${MAX_DHCP_OPTION_BYTES} bytes`);
    else {
      bytes += 2 + value.length;
      options.set(code, { code, value: value.toString('hex') });
    }
  };
  const { bootFileName = '', tftpServerName = '', ntpServers = [], privateOptions = [] } = given;
  add('bootFileName', BOOT_FILE, Buffer.from(bootFileName));
  add('tftpServerName', TFTP_SERVER, Buffer.from(tftpServerName));
  add('ntpServers', NTP, readNtpServers(ntpServers, ignored));
  for (const { option, value } of privateOptions) {
    const field = `privateOptions ${option}`;
    const isPrivate = Number.isInteger(option) && option >= FIRST_PRIVATE && option <= LAST_PRIVATE;
    if (!isPrivate) ignored.add(`${field} is not ${FIRST_PRIVATE} to ${LAST_PRIVATE}`);
    else if (option === MICROSOFT_ROUTES) ignored.add(`${field} has the routes of the network`);
    else add(field, option, Buffer.from(value));
  }
  return { options: [...options.values()], ignored: ignored.list };
}

function readNtpServers(texts: readonly string[], ignored: IgnoredClauses): Buffer {
  if (texts.length > MAX_NTP_SERVERS) ignored.add(`ntpServers has more than ${MAX_NTP_SERVERS} items`);
  const bytes: number[] = [];
  for (const text of texts.slice(0, MAX_NTP_SERVERS)) {
    if (isIPv4(text)) bytes.push(...text.split('.').map(Number));
    else ignored.add(`ntpServers ${JSON.stringify(text.slice(0, 45))} is not an IPv4 address`);
  }
  return Buffer.from(bytes);
}

/** What a guest does not get. They stay in memory, so only the first ones are kept, and the others are counted. */
class IgnoredClauses {
  readonly #first: string[] = [];
  #more = 0;

  add(clause: string): void {
    if (this.#first.length < MAX_IGNORED) this.#first.push(clause);
    else this.#more++;
  }

  get list(): string[] {
    return this.#more === 0 ? this.#first : [...this.#first, `and ${this.#more} more`];
  }
}
