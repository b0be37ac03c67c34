import type { GuestBootFile } from '../../api/address-pool.js';
import { describeValue, isRecord } from '../../api/json.js';
import { GUEST_LIMITS } from '../../api/limits.js';
import { type Address, formatAddress, parseAddress } from '../address/address.js';
import { containsAddress, parseCidr } from '../address/cidr.js';
import type { FieldValue, PoolProblems } from './pool-problems.js';

/** A file that clients load over the network, as `bootEntry` of `guest/packets/boot.go` reads it. */
export interface BootFile {
  /** For iPXE alone. */
  readonly ipxe?: true;
  /** Of RFC 4578, section 2.1; absent: all. */
  readonly architectures?: readonly number[];
  /** The TFTP server for IPv4. */
  readonly server?: string;
  /** For DHCPv4: a path on that server, or a URL. */
  readonly file?: string;
  /** For DHCPv6. */
  readonly url?: string;
  readonly parameters?: readonly string[];
}

type Fields = Partial<Record<keyof GuestBootFile, unknown>>;

/** Of no host, or only on a link that is not named. */
const NO_HOSTS = [
  ...['0.0.0.0/32', '127.0.0.0/8', '169.254.0.0/16', '224.0.0.0/4', '255.255.255.255/32'],
  ...['::/127', 'fe80::/10', 'ff00::/8'],
].map(parseCidr);
const FILE = /^[!-~]{1,255}$/;
const PARAMETER = /^[ -~]{1,64}$/;

/** Parses `spec.guest.dhcp.boot`. Never throws; adds what is invalid to the problems. */
export function readBootFiles({ field, value }: FieldValue<unknown>, problems: PoolProblems): BootFile[] {
  return problems.readList(field, value, GUEST_LIMITS.bootFiles).flatMap((place) => {
    const { ipxe, architectures, servers, file, parameters }: Fields = isRecord(place.value) ? place.value : {};
    const at = (name: keyof GuestBootFile) => `${place.field}.${name}`;
    if (typeof file !== 'string' || !FILE.test(file)) {
      problems.add(at('file'), `${describeValue(file)} is not a path or URL of at most 255 characters without spaces`);
      return [];
    }
    if (ipxe !== undefined && typeof ipxe !== 'boolean')
      problems.add(at('ipxe'), `${describeValue(ipxe)} is neither true nor false`);
    const addresses = readServers({ field: at('servers'), value: servers }, problems);
    if (!isUrl(file) && addresses.length === 0)
      problems.add(at('servers'), `is empty: name the TFTP server that has ${file}, or write a URL`);
    const words = readAll(
      { field: at('parameters'), value: parameters },
      GUEST_LIMITS.bootParameters,
      isParameter,
      problems,
    );
    const numbers = { field: at('architectures'), value: architectures };
    const wanted = readAll(numbers, GUEST_LIMITS.bootArchitectures, isArchitecture, problems);
    return {
      ...(ipxe === true && { ipxe }),
      ...(wanted.length > 0 && { architectures: wanted }),
      ...locationsOf(file, addresses),
      ...(words.length > 0 && { parameters: words }),
    };
  });
}

/** A path is named in the ways of both protocols, as far as there are servers. */
function locationsOf(file: string, servers: readonly Address[]): Pick<BootFile, 'server' | 'file' | 'url'> {
  const of = (wanted: 4 | 6) => servers.filter(({ family }) => family === wanted).map(formatAddress)[0];
  const [server, server6] = [of(4), of(6)];
  const named = server !== undefined && { server };
  if (isUrl(file)) return { ...named, file, url: file };
  const url = server6 !== undefined && { url: `tftp://[${server6}]/${file.replace(/^\/+/, '')}` };
  return { ...named, ...(server !== undefined && { file }), ...url };
}

function readServers(place: FieldValue<unknown>, problems: PoolProblems): Address[] {
  const places = problems.readList(place.field, place.value, GUEST_LIMITS.bootServers);
  const addresses = places.flatMap((each) => problems.parseText(each, '10.1.0.8 or fd00:1::8', parseAddress) ?? []);
  for (const each of addresses)
    if (!isReachable(each))
      problems.add(place.field, `${formatAddress(each)} is not the address of a host that guests reach`);
  if (new Set(addresses.map(({ family }) => family)).size < addresses.length)
    problems.add(place.field, 'has two addresses of one family: remove one of them');
  return addresses;
}

function isReachable(address: Address): boolean {
  return !NO_HOSTS.some((cidr) => containsAddress(cidr, address));
}

function readAll<T>(
  { field, value }: FieldValue<unknown>,
  most: number,
  isRight: (each: unknown) => each is T,
  problems: PoolProblems,
): T[] {
  return problems.readList(field, value, most).flatMap((place) => {
    if (isRight(place.value)) return place.value;
    problems.add(place.field, `${describeValue(place.value)} is not valid: see the description of the field`);
    return [];
  });
}

function isArchitecture(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= 65_535;
}

function isParameter(value: unknown): value is string {
  return typeof value === 'string' && PARAMETER.test(value);
}

function isUrl(file: string): boolean {
  return file.includes('://');
}
