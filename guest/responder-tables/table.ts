import { type Address, formatAddress } from '../../addressing/address/address.js';
import { formatCidr } from '../../addressing/address/cidr.js';
import type { LeaseRecord } from '../../addressing/lease/lease.js';
import { guestSettings } from '../../addressing/pool/guest-settings.js';
import { type Pool, subnetOf } from '../../addressing/pool/pool.js';
import { type IPAMClaim, claimOwnerOf } from '../../api/ipam-claim.js';
import { omitUndefined } from '../../api/json.js';
import { byAgeAndKey, objectKey } from '../../api/meta.js';
import type { NadGuestOptions } from '../../api/networks/nad-guests.js';
import { shortHash } from '../../api/names.js';
import { claimEventSubject, claimEventSubjects } from '../../cluster/event-subjects.js';
import type { Lister } from '../../kube/informers/cache.js';
import type { VmDhcp } from '../dhcp-options.js';
import { leasedAddresses } from '../leased-addresses.js';
import { type GuestCaches, findGuests } from '../running-guests.js';
import { fairOrder } from '../fair-order.js';
import type { GuestTable, TableGuest } from './guest-table.js';
import { type GuestOptionSet, MAX_OPTION_SETS, type TableEntry } from './protocol.js';

/** Entries of one table: four times the addresses of a /20. Beyond it, the youngest claims of namespaces with the most guests are not served. */
export const MAX_ENTRIES = 16_384;

/**
 * Sets of options of NADs in one table. Tenants write NADs, and the helper keeps the sets of two tables, each with one of the pool alone, which guests
 * on further NADs get.
 */
export const MAX_NAD_OPTION_SETS = MAX_OPTION_SETS / 2 - 1;

/** A claim on a layer-2 NAD of the pool's network, whose VM runs. */
export interface RunningGuest {
  readonly claim: IPAMClaim;
  /** The MAC address of the guest's interface. */
  readonly mac: string;
  /** The addresses of the claim's status that are leased to it. */
  readonly addresses: readonly Address[];
  /** Settings of its NAD. */
  readonly nadOptions: NadGuestOptions | undefined;
  /** The guest's default route uses this interface. */
  readonly hasDefaultRoute: boolean;
  /** What its VM says. */
  readonly dhcp?: VmDhcp;
}

/** Bytes of a name in DNS. */
const MAX_DOMAIN = 253;

/** Guests whose leases are read, or that are added, in one step. */
const GUESTS_PER_STEP = 500;

/**
 * Builds the table of a pool. Pure: two responders that observe the same objects give the same answers. Yields between short steps.
 * @param guests at most one of each MAC address
 */
export function* buildTable(pool: Pool, guests: readonly RunningGuest[]): Generator<undefined, GuestTable> {
  const entries = new Map<string, TableEntry>();
  const options = new Map<string, GuestOptionSet>();
  const byAddress = new Map<string, TableGuest>();
  const optionsOf = optionsByNad(pool);
  const oldestFirst = guests
    .filter(({ addresses }) => addresses.length > 0)
    .sort((a, b) => byAgeAndKey(a.claim, b.claim));
  const fair = fairOrder(oldestFirst, namespaceOf);
  const served = fair.slice(0, MAX_ENTRIES);
  const ids = yield* servedOptions(served, optionsOf);
  for (const [index, guest] of served.entries()) {
    if (index % GUESTS_PER_STEP === 0) yield;
    const { mac, addresses } = guest;
    if (entries.has(mac)) throw new TypeError(`two guests have the MAC address ${mac}`);
    const families = familiesOf(pool, addresses, guest);
    if (families.ipv4 === undefined && families.ipv6 === undefined) continue;
    const own = optionsOf(guest.nadOptions);
    const set = ids.has(own.id) ? own : optionsOf(undefined);
    options.set(set.id, set);
    entries.set(mac, { mac, owner: ownerOf(guest.claim), ...families, options: set.id, ...dhcpOf(guest, set) });
    const reported = tableGuestOf(guest);
    for (const address of addresses) byAddress.set(formatAddress(address), reported);
  }
  return { entries, options, guests: byAddress, leftOut: fair.length - served.length };
}

/** Finds the ids of the sets of options that guests get: if there are too many, as many of each namespace. Yields between short steps. */
function* servedOptions(
  guests: readonly RunningGuest[],
  optionsOf: (nadOptions: NadGuestOptions | undefined) => GuestOptionSet,
): Generator<undefined, ReadonlySet<string>> {
  const used = new Map<string, { namespace: string; id: string }>();
  for (const [index, guest] of guests.entries()) {
    if (index % GUESTS_PER_STEP === 0) yield;
    const namespace = namespaceOf(guest);
    const { id } = optionsOf(guest.nadOptions);
    used.set(`${namespace}/${id}`, { namespace, id });
  }
  const fair = fairOrder([...used.values()], ({ namespace }) => namespace);
  return new Set([...new Set(fair.map(({ id }) => id))].slice(0, MAX_NAD_OPTION_SETS));
}

function namespaceOf({ claim }: RunningGuest): string {
  return claim.metadata.namespace ?? '';
}

export function tableGuestOf({ claim }: Pick<RunningGuest, 'claim'>): TableGuest {
  const [subject = claimEventSubject(claim)] = claimEventSubjects(claim).slice(-1);
  return { claim: objectKey(claim), subject };
}

/** Names and options of one guest. Its domain is the first search domain of the network. */
function dhcpOf({ dhcp }: RunningGuest, { search }: GuestOptionSet): Pick<TableEntry, 'hostname' | 'fqdn' | 'dhcp4'> {
  if (dhcp === undefined) return {};
  const { hostname, prefix, options } = dhcp;
  const fqdn = [prefix, search[0]].filter((each) => each !== undefined).join('.');
  return {
    ...(hostname !== undefined && { hostname, ...(fqdn.length <= MAX_DOMAIN && { fqdn }) }),
    ...(options.length > 0 && { dhcp4: options }),
  };
}

/** A name of the claim's VM. Tenants write claims: one of another namespace never has the same. */
function ownerOf(claim: IPAMClaim): string {
  return shortHash(`${claim.metadata.namespace ?? ''}\n${claimOwnerOf(claim)?.uid ?? claim.metadata.uid ?? ''}`, 16);
}

/** Addresses outside the pool's subnets, which were edited, are left out: nothing is known about their network. */
function familiesOf(
  pool: Pool,
  addresses: readonly Address[],
  { hasDefaultRoute }: RunningGuest,
): Pick<TableEntry, 'ipv4' | 'ipv6'> {
  let found: Pick<TableEntry, 'ipv4' | 'ipv6'> = {};
  for (const address of addresses) {
    const subnet = subnetOf(pool, address);
    if (subnet === undefined) continue;
    const given = { address: formatAddress(address), prefix: subnet.cidr.prefixLength };
    const router = hasDefaultRoute && subnet.gateway !== undefined ? formatAddress(subnet.gateway) : undefined;
    found =
      address.family === 4
        ? { ...found, ipv4: { ...given, ...(router !== undefined && { router }) } }
        : { ...found, ipv6: { address: given.address } };
  }
  return found;
}

/** Guests of one NAD share its settings. */
function optionsByNad(pool: Pool): (nadOptions: NadGuestOptions | undefined) => GuestOptionSet {
  const known = new Map<NadGuestOptions | undefined, GuestOptionSet>();
  return (nadOptions) => {
    const set = known.get(nadOptions) ?? optionSetOf(pool, nadOptions);
    known.set(nadOptions, set);
    return set;
  };
}

function optionSetOf(pool: Pool, nadOptions: NadGuestOptions | undefined): GuestOptionSet {
  const { mtu, nameservers, search, ntp, routes } = guestSettings(pool, nadOptions);
  const options = omitUndefined({
    mtu,
    dns: nameservers.map(formatAddress),
    search,
    ntp: ntp.map(formatAddress),
    routes: routes.map(({ destination, gateway }) => ({
      destination: formatCidr(destination),
      gateway: formatAddress(gateway),
    })),
    dhcp4: pool.guest?.dhcp?.options,
    dhcp6: pool.guest?.dhcp?.optionsV6,
  });
  return { id: shortHash(JSON.stringify(options), 16), ...options };
}

export interface TableCaches extends GuestCaches {
  readonly leases: Pick<Lister<LeaseRecord>, 'get'>;
}

/** Finds the guests of a pool, from the caches as they are. Yields between short steps. */
export function* poolGuests(pool: Pool, caches: TableCaches): Generator<undefined, RunningGuest[]> {
  const { served } = yield* findGuests(pool.network, caches);
  const own = served.filter((guest) => guest.pool.name === pool.name);
  const guests: RunningGuest[] = [];
  for (const { claim, mac, nad, hasDefaultRoute, dhcp } of own) {
    const addresses = leasedAddresses(claim, pool, caches.leases);
    guests.push({ claim, mac, hasDefaultRoute, dhcp, addresses, nadOptions: nad.guestOptions });
    if (guests.length % GUESTS_PER_STEP === 0) yield;
  }
  yield;
  return guests;
}
