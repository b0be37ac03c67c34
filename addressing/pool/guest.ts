import type { GuestDhcpOptions, GuestOptions, GuestRoute } from '../../api/address-pool.js';
import { describeValue } from '../../api/json.js';
import { GUEST_LIMITS } from '../../api/limits.js';
import { isObjectName } from '../../api/meta.js';
import { type Address, formatAddress, parseAddress } from '../address/address.js';
import { type Cidr, containsAddress, formatCidr, parseCidr } from '../address/cidr.js';
import { type BootFile, readBootFiles } from './boot-files.js';
import { type DhcpOption, readDhcpOptions } from './dhcp-options.js';
import { type FieldValue, type PoolProblems, isAbsent } from './pool-problems.js';

/** How the guests of a pool get their addresses on layer-2 networks: `spec.guest`, parsed. Absent settings are those of the NAD. */
export interface GuestDelivery {
  /** The name of a NAD in the responders' namespace. */
  readonly attachment?: string;
  /** Times in seconds. */
  readonly dhcp?: Times & {
    readonly options?: readonly DhcpOption[];
    readonly optionsV6?: readonly DhcpOption[];
    readonly boot?: readonly BootFile[];
  };
  /** Responders check that no host has an address before a claim shows it. */
  readonly probe: boolean;
  /** VMs that name a Secret for network data opt in by that. */
  readonly isNetworkDataDefault: boolean;
  readonly dns?: { readonly nameservers: readonly Address[]; readonly search: readonly string[] };
  readonly ntp: readonly Address[];
  readonly routes?: readonly { readonly destination: Cidr; readonly gateway: Address }[];
  readonly mtu?: number;
}

type Times = Readonly<Required<Omit<GuestDhcpOptions, 'options' | 'optionsV6' | 'boot'>>>;
type Fields<T> = Partial<Record<keyof T, unknown>>;

const FIELD = 'spec.guest';
/** Short times before renewal, so that changes reach guests; a long lease, so that guests keep their addresses in an outage. */
const DEFAULT_TIMES: Times = { renewSeconds: 300, rebindSeconds: 600, leaseSeconds: 86_400 };
/** RFC 8200, section 5: every IPv6 link carries packets of this size. */
export const MIN_IPV6_MTU = 1280;
const DOMAIN = /^[A-Za-z0-9_]([-A-Za-z0-9_]{0,61}[A-Za-z0-9_])?(\.[A-Za-z0-9_]([-A-Za-z0-9_]{0,61}[A-Za-z0-9_])?)*$/;

/** Parses `spec.guest`. Never throws; adds what is invalid to the problems. */
export function readGuest(
  value: unknown,
  subnets: readonly { readonly cidr: Cidr }[],
  problems: PoolProblems,
): GuestDelivery | undefined {
  const fields: Fields<GuestOptions> | undefined = problems.readOptionalObject({ field: FIELD, value });
  if (fields === undefined) return undefined;
  const attachment = readAttachment(fields, problems);
  const dhcp = readDhcp(fields.dhcp, problems);
  const probe = readProbeOption(fields, problems);
  const networkData = problems.readOptionalObject({ field: `${FIELD}.networkData`, value: fields.networkData });
  const dns = readDns(fields.dns, problems);
  const routes = readRoutes(fields.routes, subnets, problems);
  const mtu = readMtu(fields.mtu, subnets, problems);
  return {
    ...(attachment !== undefined && { attachment }),
    ...(dhcp !== undefined && { dhcp }),
    probe,
    isNetworkDataDefault: problems.readFlag(`${FIELD}.networkData.default`, networkData?.default),
    ...(dns !== undefined && { dns }),
    ntp: readAddresses({ field: `${FIELD}.ntp`, value: fields.ntp }, GUEST_LIMITS.ntp, problems),
    ...(routes !== undefined && { routes }),
    ...(mtu !== undefined && { mtu }),
  };
}

function readAttachment({ attachment, dhcp }: Fields<GuestOptions>, problems: PoolProblems): string | undefined {
  const field = `${FIELD}.attachment`;
  if (isAbsent(attachment)) {
    if (!isAbsent(dhcp))
      problems.add(
        field,
        'is absent: name the NetworkAttachmentDefinition that attaches the responders to the network',
      );
    return undefined;
  }
  const name = problems.readText(field, attachment, 'blue');
  if (name === undefined || (name.length <= GUEST_LIMITS.attachment && isObjectName(name))) return name;
  problems.add(field, `${describeValue(name)} is not a name of a NetworkAttachmentDefinition: correct it`);
  return undefined;
}

function readDhcp(value: unknown, problems: PoolProblems): GuestDelivery['dhcp'] {
  const field = `${FIELD}.dhcp`;
  const fields: Fields<GuestDhcpOptions> | undefined = problems.readOptionalObject({ field, value });
  if (fields === undefined) return undefined;
  const read = (key: keyof Times) =>
    problems.readInteger({ field: `${field}.${key}`, value: fields[key] }, GUEST_LIMITS[key]) ?? DEFAULT_TIMES[key];
  const times = {
    renewSeconds: read('renewSeconds'),
    rebindSeconds: read('rebindSeconds'),
    leaseSeconds: read('leaseSeconds'),
  };
  for (const [earlier, later] of [
    ['renewSeconds', 'rebindSeconds'],
    ['rebindSeconds', 'leaseSeconds'],
  ] as const) {
    if (times[earlier] < times[later]) continue;
    problems.add(`${field}.${later}`, `${times[later]} is not greater than ${earlier}, which is ${times[earlier]}`);
  }
  const options = readDhcpOptions({ field: `${field}.options`, value: fields.options }, 4, problems);
  const optionsV6 = readDhcpOptions({ field: `${field}.optionsV6`, value: fields.optionsV6 }, 6, problems);
  const boot = readBootFiles({ field: `${field}.boot`, value: fields.boot }, problems);
  return {
    ...times,
    ...(options.length > 0 && { options }),
    ...(optionsV6.length > 0 && { optionsV6 }),
    ...(boot.length > 0 && { boot }),
  };
}

function readProbeOption({ probe, dhcp }: Fields<GuestOptions>, problems: PoolProblems): boolean {
  const field = `${FIELD}.probe`;
  const isProbed = problems.readFlag(field, probe);
  if (isProbed && isAbsent(dhcp)) problems.add(field, 'needs responders: set dhcp too, or remove probe');
  return isProbed;
}

function readDns(value: unknown, problems: PoolProblems): GuestDelivery['dns'] {
  const field = `${FIELD}.dns`;
  const fields: Fields<NonNullable<GuestOptions['dns']>> | undefined = problems.readOptionalObject({ field, value });
  if (fields === undefined) return undefined;
  const places = problems.readList(`${field}.search`, fields.search, GUEST_LIMITS.search);
  const search = places.flatMap((place) => {
    const domain = problems.readText(place.field, place.value, 'example.com');
    if (domain === undefined || isDomain(domain)) return domain ?? [];
    problems.add(
      place.field,
      `${describeValue(domain)} is not a domain: write it like example.com, without a final dot`,
    );
    return [];
  });
  // RFC 1035, section 3.1: a length before each label, and a 0 at the end
  const bytes = search.reduce((sum, domain) => sum + domain.length + 2, 0);
  if (bytes > GUEST_LIMITS.searchBytes) {
    const message = `needs ${bytes} bytes in a DHCP option, which has ${GUEST_LIMITS.searchBytes}: remove some domains`;
    problems.add(`${field}.search`, message);
  }
  const nameservers = { field: `${field}.nameservers`, value: fields.nameservers };
  return { nameservers: readAddresses(nameservers, GUEST_LIMITS.nameservers, problems), search };
}

/** True for a search domain without a final dot. */
export function isDomain(text: string): boolean {
  return text.length <= GUEST_LIMITS.domain && DOMAIN.test(text);
}

function readRoutes(
  value: unknown,
  subnets: readonly { readonly cidr: Cidr }[],
  problems: PoolProblems,
): GuestDelivery['routes'] {
  if (isAbsent(value)) return undefined;
  const field = `${FIELD}.routes`;
  const routes = problems.readList(field, value, GUEST_LIMITS.routes).flatMap((place) => {
    const route: Fields<GuestRoute> | undefined = problems.readObject(place);
    if (route === undefined) return [];
    const { field: path } = place;
    const destination = problems.parseText(
      { field: `${path}.destination`, value: route.destination },
      '10.9.0.0/16',
      parseCidr,
    );
    const gateway = problems.parseText({ field: `${path}.gateway`, value: route.gateway }, '10.1.0.1', parseAddress);
    if (destination === undefined || gateway === undefined) return [];
    if (destination.prefixLength === 0)
      problems.add(
        `${path}.destination`,
        `${formatCidr(destination)} is the default route: set subnets[].gateway instead`,
      );
    if (gateway.family !== destination.family)
      problems.add(
        path,
        `${formatAddress(gateway)} is not of the family of ${formatCidr(destination)}: correct one of them`,
      );
    else if (!subnets.some(({ cidr }) => containsAddress(cidr, gateway)))
      problems.add(
        `${path}.gateway`,
        `${formatAddress(gateway)} is in no subnet of the pool, so guests cannot reach it`,
      );
    return { destination, gateway };
  });
  const seen = new Set<string>();
  for (const destination of routes.map((route) => formatCidr(route.destination))) {
    if (seen.has(destination)) problems.add(field, `has two routes to ${destination}: remove one of them`);
    seen.add(destination);
  }
  return routes;
}

function readMtu(
  value: unknown,
  subnets: readonly { readonly cidr: Cidr }[],
  problems: PoolProblems,
): number | undefined {
  const field = `${FIELD}.mtu`;
  const mtu = problems.readInteger({ field, value }, GUEST_LIMITS.mtu);
  if (mtu !== undefined && mtu < MIN_IPV6_MTU && subnets.some(({ cidr }) => cidr.family === 6))
    problems.add(field, `${mtu} is too small for the IPv6 subnets of the pool: write at least ${MIN_IPV6_MTU}`);
  return mtu;
}

function readAddresses({ field, value }: FieldValue<unknown>, most: number, problems: PoolProblems): Address[] {
  const places = problems.readList(field, value, most);
  return places.flatMap((place) => problems.parseText(place, '10.1.0.53 or fd00:1::53', parseAddress) ?? []);
}
