import { addressSpaceOf } from '../../api/address-pool.js';
import { claimOwnerOf } from '../../api/ipam-claim.js';
import { IPAM_CLAIM_KIND } from '../../api/names.js';
import { type Address, formatAddress } from '../../ipam/core/address.js';
import { leaseName } from '../../ipam/core/lease-name.js';
import { type LeaseRecord, readLease, stateOf } from '../../ipam/core/lease.js';
import { compilePool, subnetOf } from '../../ipam/core/pool.js';
import { notLeasableSubject } from '../../ipam/core/refusal-messages.js';
import { findUnlessGone } from '../../kube/absence.js';
import type { Client } from '../../kube/client.js';
import { isForbidden } from '../../kube/errors.js';
import { forEachParallel } from '../../kube/for-each-parallel.js';
import { ADDRESS_LEASES, ADDRESS_POOLS, IPAM_CLAIMS } from '../../kube/resources.js';
import { CONCURRENCY } from '../cluster-client.js';
import { type Column, type Output, tableLines } from '../output.js';
import { INSTALL_HOLDFAST, requireKind } from '../required-kind.js';

/** Who has an address in one address space. */
interface HolderRow {
  readonly addressSpace: string;
  readonly pool: string;
  /** `held`, `released`, `reserved`, `free`, or why the address is never leased. */
  readonly state: string;
  readonly owner: string;
  /** The owner of the claim. */
  readonly vm: string;
  readonly node: string;
  readonly mac: string;
  /** RFC 3339; empty unless it is released. */
  readonly releasedAt: string;
}

const COLUMNS: readonly Column<HolderRow>[] = [
  { header: 'ADDRESS SPACE', value: (row) => row.addressSpace },
  { header: 'POOL', value: ({ pool }) => pool },
  { header: 'STATE', value: ({ state }) => state },
  { header: 'OWNER', value: ({ owner }) => owner },
  { header: 'VM', value: ({ vm }) => vm },
  { header: 'NODE', value: ({ node }) => node },
  { header: 'MAC', value: ({ mac }) => mac },
  { header: 'RELEASED', value: ({ releasedAt }) => releasedAt },
];

/** Finds who has an address now, in all address spaces whose pools contain it. */
export async function findHolders(address: Address, client: Pick<Client, 'get' | 'list'>): Promise<Output> {
  const { items } = await requireKind(ADDRESS_POOLS, INSTALL_HOLDFAST, () => client.list(ADDRESS_POOLS));
  const unused = new Map<string, HolderRow>();
  for (const object of items) {
    const compiled = compilePool(object);
    const subnet = compiled.ok ? subnetOf(compiled.pool, address) : undefined;
    if (!compiled.ok || subnet === undefined) continue;
    const { pool } = compiled;
    const state = subnet.leasable.has(address.value) ? 'free' : notLeasableSubject(address, subnet, pool);
    unused.set(pool.addressSpace, { ...EMPTY, addressSpace: pool.addressSpace, pool: pool.name, state });
  }
  const rows: HolderRow[] = [];
  // a lease may be outside of all pools
  await forEachParallel([...new Set(items.map(addressSpaceOf))].sort(), CONCURRENCY, async (space) => {
    const lease = await findUnlessGone(client, ADDRESS_LEASES, { name: leaseName(space, address) });
    const row = lease === undefined ? unused.get(space) : await leaseRow(readLease(lease), client);
    if (row !== undefined) rows.push(row);
  });
  rows.sort((a, b) => a.addressSpace.localeCompare(b.addressSpace));
  const text = formatAddress(address);
  return {
    data: { address: text, holders: rows },
    lines: (isWide) =>
      rows.length === 0
        ? [`${text} is in no AddressPool: nobody has it from Holdfast`]
        : tableLines(COLUMNS, rows, isWide),
  };
}

const EMPTY = { owner: '', vm: '', node: '', mac: '', releasedAt: '' };

async function leaseRow(lease: LeaseRecord, client: Pick<Client, 'get'>): Promise<HolderRow> {
  const { addressSpace, pool, owner, node = '', mac = '', releasedAt } = lease;
  return {
    addressSpace,
    pool,
    state: stateOf(lease),
    owner: owner === undefined ? '' : `${owner.kind} ${owner.namespace}/${owner.name}`,
    vm: owner?.kind === IPAM_CLAIM_KIND ? await vmOf(owner, client) : '',
    node,
    mac,
    releasedAt: releasedAt === undefined ? '' : new Date(releasedAt).toISOString(),
  };
}

/** Empty if the claim is gone, or the user may not read it. */
async function vmOf(
  ref: { namespace: string; name: string; uid: string },
  client: Pick<Client, 'get'>,
): Promise<string> {
  const { namespace, name, uid } = ref;
  const claim = await findUnlessGone(client, IPAM_CLAIMS, { namespace, name }).catch((error: unknown) => {
    if (isForbidden(error)) return undefined;
    throw error;
  });
  return claim?.metadata.uid === uid ? (claimOwnerOf(claim)?.name ?? '') : '';
}
