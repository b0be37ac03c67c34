import { type LeaseOwner, describeLeaseOwner } from '../../api/address-lease.js';
import { addressSpaceOf } from '../../api/address-pool.js';
import { type IPAMClaim, claimOwnerOf, labelValue } from '../../api/ipam-claim.js';
import { IPAM_CLAIM_KIND, LEASE_MAC } from '../../api/names.js';
import { LAUNCHER_SELECTOR, type Pod } from '../../api/pod.js';
import { type Address, compareAddresses, formatAddress, parseAddress } from '../../addressing/address/address.js';
import { leaseName } from '../../addressing/lease/lease-name.js';
import { describeLock } from '../../addressing/lease/lease-network-data.js';
import {
  type LeaseRecord,
  type LeaseTimes,
  expiresAt,
  isReservation,
  readLease,
  stateOf,
} from '../../addressing/lease/lease.js';
import { type Pool, compilePool, subnetOf } from '../../addressing/pool/pool.js';
import { notLeasableSubject } from '../../addressing/allocator/refusal-messages.js';
import { findUnlessGone } from '../../kube/absence.js';
import type { Client } from '../../kube/client.js';
import { forEachParallel } from '../../kube/run-in-slices.js';
import { ADDRESS_LEASES, ADDRESS_POOLS, IPAM_CLAIMS, PODS } from '../../kube/resources.js';
import { ClaimUsers } from '../claim-users.js';
import { CONCURRENCY } from '../cluster-client.js';
import { type Column, type Output, tableLines } from '../output.js';
import { INSTALL_HOLDFAST, readList, readListAs, readObject, required, valueOr } from '../reader.js';
import { defaultTimesOf } from '../usage/address-map.js';

/** One lease, or an address without one in one address space. */
interface HolderRow {
  readonly address: string;
  readonly addressSpace: string;
  readonly pool: string;
  /** `held`, `reserved`, `free`, `quarantined` or `released` with the time until which it is kept, or why the address is never leased. */
  readonly state: string;
  readonly owner: string;
  /** The owner of the claim. */
  readonly vm: string;
  /** The launchers that use the claim, with their nodes. */
  readonly pods: string;
  readonly node: string;
  readonly mac: string;
  /** RFC 3339; empty unless it is released. */
  readonly releasedAt: string;
}

const COLUMNS: readonly Column<HolderRow>[] = [
  { header: 'ADDRESS', value: ({ address }) => address },
  { header: 'ADDRESS SPACE', value: (row) => row.addressSpace },
  { header: 'POOL', value: ({ pool }) => pool },
  { header: 'STATE', value: ({ state }) => state },
  { header: 'OWNER', value: ({ owner }) => owner },
  { header: 'VM', value: ({ vm }) => vm },
  { header: 'PODS', value: ({ pods }) => pods },
  { header: 'NODE', value: ({ node }) => node },
  { header: 'MAC', value: ({ mac }) => mac },
  { header: 'RELEASED', value: ({ releasedAt }) => releasedAt, isWide: true },
];

type ReadClient = Pick<Client, 'get' | 'list' | 'listAs'>;

/**
 * Finds who has an address now, in all address spaces whose pools contain it.
 * @param now milliseconds since the epoch
 */
export async function findHolders(address: Address, client: ReadClient, now: number): Promise<Output> {
  const pools = await readPools(client);
  const unused = new Map<string, HolderRow>();
  for (const { pool } of pools) {
    const subnet = pool && subnetOf(pool, address);
    if (pool === undefined || subnet === undefined) continue;
    const state = subnet.leasable.has(address.value) ? 'free' : notLeasableSubject(address, subnet, pool);
    const place = { address: formatAddress(address), addressSpace: pool.addressSpace, pool: pool.name };
    unused.set(pool.addressSpace, { ...EMPTY, ...place, state });
  }
  const rows: HolderRow[] = [];
  // a lease may be outside of all pools
  await forEachParallel([...new Set(pools.map(({ space }) => space))].sort(), CONCURRENCY, async (space) => {
    const lease = await findUnlessGone(client, ADDRESS_LEASES, { name: leaseName(space, address) });
    const row = lease === undefined ? unused.get(space) : await leaseRow(readLease(lease), { pools, client, now });
    if (row !== undefined) rows.push(row);
  });
  const text = formatAddress(address);
  return outputOf({ address: text }, rows, `${text} is in no AddressPool: nobody has it from Holdfast`);
}

/** Finds the addresses that are leased to a MAC address now. @param mac lower case, with colons */
export async function findHoldersOfMac(mac: string, client: ReadClient, now: number): Promise<Output> {
  const pools = await readPools(client);
  const labelSelector = `${LEASE_MAC}=${labelValue(mac.replaceAll(':', '-'))}`;
  const { items } = await client.list(ADDRESS_LEASES, { labelSelector });
  const rows: HolderRow[] = [];
  await forEachParallel(items, CONCURRENCY, async (lease) => {
    rows.push(await leaseRow(readLease(lease), { pools, client, now }));
  });
  return outputOf({ mac }, rows, `no address is leased to ${mac}`);
}

function outputOf(asked: object, rows: HolderRow[], none: string): Output {
  const address = ({ address: text }: HolderRow) => parseAddress(text);
  rows.sort((a, b) => a.addressSpace.localeCompare(b.addressSpace) || compareAddresses(address(a), address(b)));
  return {
    data: { ...asked, holders: rows },
    lines: (isWide) => (rows.length === 0 ? [none] : tableLines(COLUMNS, rows, isWide)),
  };
}

interface KnownPool {
  readonly space: string;
  /** Undefined if its spec is invalid. */
  readonly pool: Pool | undefined;
}

async function readPools(client: ReadClient): Promise<KnownPool[]> {
  return required(await readList(client, ADDRESS_POOLS), INSTALL_HOLDFAST).map((object) => {
    const compiled = compilePool(object);
    return { space: addressSpaceOf(object), pool: compiled.ok ? compiled.pool : undefined };
  });
}

const EMPTY_OWNER = { owner: '', vm: '', pods: '' };
const EMPTY = { ...EMPTY_OWNER, node: '', mac: '', releasedAt: '' };

async function leaseRow(
  lease: LeaseRecord,
  { pools, client, now }: { pools: readonly KnownPool[]; client: ReadClient; now: number },
): Promise<HolderRow> {
  const { address, addressSpace, owner, node = '', mac = '', releasedAt } = lease;
  const pool = pools.find((known) => known.pool?.name === lease.pool)?.pool;
  return {
    address: formatAddress(address),
    addressSpace,
    pool: lease.pool,
    state: describeState(lease, pool && defaultTimesOf(pool), now),
    ...(owner === undefined ? EMPTY_OWNER : await describeOwner(owner, client)),
    node,
    mac,
    releasedAt: releasedAt === undefined ? '' : new Date(releasedAt).toISOString(),
  };
}

async function describeOwner(owner: LeaseOwner, client: ReadClient): Promise<typeof EMPTY_OWNER> {
  const { kind, namespace, name, uid } = owner;
  const found = { ...EMPTY_OWNER, owner: describeLeaseOwner(owner) };
  if (kind !== IPAM_CLAIM_KIND) return found;
  const read = await readObject(client, IPAM_CLAIMS, { namespace, name });
  // pods may name a claim that the user may not read
  const unread = { metadata: { namespace, name, uid }, spec: { network: '', interface: '' } };
  const claim = valueOr(read, { absent: undefined, forbidden: unread });
  if (claim?.metadata.uid !== uid) return found;
  const vm = read.kind === 'found' ? (claimOwnerOf(claim)?.name ?? '') : 'unknown: you may not read the claim';
  return { ...found, vm, pods: await podsOf(claim, client) };
}

/** Says of a released lease how long its address is kept, and for whom. @param times undefined if the pool is gone or invalid */
export function describeState(lease: LeaseRecord, times: LeaseTimes | undefined, now: number): string {
  const { releasedAt, mac, quarantine, networkData } = lease;
  if (quarantine !== undefined)
    return `quarantined until ${new Date(quarantine.until).toISOString()}, because ${quarantine.mac} has it`;
  if (releasedAt === undefined || times === undefined) return stateOf(lease);
  if (networkData !== undefined) return `released, ${describeLock(networkData)}`;
  const cool = releasedAt + times.cooldownMs;
  if (now < cool) return `released, cooling down until ${new Date(cool).toISOString()}`;
  if (isReservation(lease)) return 'released, about to be reserved again';
  const end = expiresAt(lease, times);
  return now < end
    ? `released, sticky for MAC address ${mac ?? ''} until ${new Date(end).toISOString()}`
    : 'released, about to be free';
}

async function podsOf(claim: IPAMClaim, client: ReadClient): Promise<string> {
  const { namespace } = claim.metadata;
  const users = new ClaimUsers().add(claim);
  const textsOf = (pod: Pod) => {
    const { metadata, spec } = pod;
    if (!users.has(pod)) return [];
    return [`${metadata.name}${spec?.nodeName ? ` on ${spec.nodeName}` : ', not scheduled'}`];
  };
  const read = await readListAs(client, PODS, textsOf, { namespace, labelSelector: LAUNCHER_SELECTOR });
  return valueOr(read, { forbidden: [`unknown: you may not list pods in namespace ${namespace ?? ''}`] })
    .sort()
    .join('; ');
}
