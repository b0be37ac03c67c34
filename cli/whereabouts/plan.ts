import { addressSpaceOf } from '../../api/address-pool.js';
import { objectKey } from '../../api/meta.js';
import { controllingVmi } from '../../api/pod.js';
import { formatAddress } from '../../addressing/address/address.js';
import { HOLDFAST_IPAM } from '../../api/networks/ipam-delegation.js';
import { DEFAULT_GLOBAL_NAMESPACES } from '../../api/names.js';
import { ActivePods } from './active-pods.js';
import { type AddressUser, findAddressUsers } from './address-users.js';
import { planLease, readExisting } from './lease-plan.js';
import { type SourceNad, readSourceNads } from './nads.js';
import type { Conflict, NadChange, MigrationObservation, Plan, PlannedLease, VmAddress } from './plan-types.js';
import { findRelevantNads, readAllocations } from './allocations.js';
import { TargetPools } from './target-pools.js';

/**
 * Plans the pools and leases for all addresses that whereabouts has allocated. Never throws: the plan names invalid content. The same objects give
 * the same plan.
 * @param network limits the plan to this CNI network and those that share its addresses
 * @param clusterFlags of printed commands
 */
export function planMigration(observed: MigrationObservation, network?: string, clusterFlags = ''): Plan {
  const { nads: all, conflicts } = readSourceNads(observed.nads);
  const nads = findRelevantNads(all, observed);
  const targets = new TargetPools(nads, observed.pools);
  const pods = new ActivePods(observed.pods);
  const read = readAllocations(observed, nads, pods);
  const { byAddress, leftOut } = findAddressUsers(read.allocations, { nads, pods, targets });
  const taken = readExisting(observed, { pods, nads, targets });
  const leases: PlannedLease[] = [];
  const found: Conflict[] = [...conflicts, ...targets.conflicts, ...read.conflicts];
  const vms: VmAddress[] = [];
  const users = new Map<string, Set<string>>();
  for (const claimants of byAddress.values()) {
    for (const { nad, pod } of claimants) {
      const group = poolGroupOf(nad);
      users.set(group, (users.get(group) ?? new Set()).add(pod.metadata.namespace ?? ''));
    }
    const planned = planLease(claimants, taken, clusterFlags);
    if (planned === undefined) continue;
    if ('request' in planned) leases.push(planned);
    else found.push(planned);
    vms.push(...claimants.flatMap((claimant) => vmAddressOf(claimant) ?? []));
  }
  // a reservation repeats an entry of an IPPool
  const judged = { leases, conflicts: found, leftOut: withoutDuplicates([...read.leftOut, ...leftOut]), vms };
  const used = new Set(leases.map(({ request }) => request.pool));
  const plan: Plan = {
    ...judged,
    // without existing pools that no planned lease uses
    pools: targets.planned.filter(({ pool, state }) => state === 'create' || used.has(pool.metadata.name)),
    changes: nads
      .filter(({ hasMoved }) => !hasMoved)
      .map((nad) => planNadChange(nad, targets.spaceOf(nad), users.get(poolGroupOf(nad)) ?? new Set())),
  };
  return network === undefined ? plan : limitToNetwork(network, plan, spacesIn(nads, targets));
}

/** One pool is derived from all NADs of a namespace and network, which must agree. */
function poolGroupOf({ namespace, network }: SourceNad): string {
  return `${namespace}/${network}`;
}

function vmAddressOf({ pod, nad, address }: AddressUser): VmAddress | undefined {
  const vmi = controllingVmi(pod);
  if (vmi === undefined) return undefined;
  return {
    vm: objectKey({ metadata: { ...pod.metadata, name: vmi.name } }),
    nad: nad.key,
    network: nad.network,
    address: formatAddress(address),
    claim: nad.allowsPersistentIPs,
  };
}

/** The IPPool and a reservation both contain the address of a pod that is gone. */
function withoutDuplicates(leftOut: Plan['leftOut']): Plan['leftOut'] {
  const seen = new Set<string>();
  return leftOut.filter(({ reason, address, message, networks }) => {
    if (address === undefined) return true;
    const key = JSON.stringify([reason, address, message, networks]);
    if (seen.has(key)) return false;
    seen.add(key);
    return true;
  });
}

/** Returns the address spaces of each network. */
function spacesIn(nads: readonly SourceNad[], targets: TargetPools): Map<string, Set<string>> {
  const spaces = new Map<string, Set<string>>();
  const add = (network: string, space: string) => spaces.set(network, (spaces.get(network) ?? new Set()).add(space));
  for (const nad of nads) add(nad.network, targets.spaceOf(nad));
  for (const { network, pool } of targets.planned) add(network, addressSpaceOf(pool));
  return spaces;
}

/** Limits a plan to one network and to those that share its addresses: an address space can only move as a whole. */
function limitToNetwork(network: string, plan: Plan, spaces: ReadonlyMap<string, ReadonlySet<string>>): Plan {
  const own = spaces.get(network) ?? new Set();
  const networks = new Set([network]);
  for (const [each, its] of spaces) if ([...its].some((space) => own.has(space))) networks.add(each);
  const concerns = (each: { networks: readonly string[] }) => each.networks.some((name) => networks.has(name));
  return {
    pools: plan.pools.filter(({ pool }) => own.has(addressSpaceOf(pool))),
    leases: plan.leases.filter(({ request }) => own.has(request.addressSpace)),
    changes: plan.changes.filter(({ space }) => own.has(space)),
    vms: plan.vms.filter((each) => networks.has(each.network)),
    leftOut: plan.leftOut.filter(concerns),
    // an invalid NAD may belong to any network, a range that overlaps no NAD's belongs to none
    conflicts: plan.conflicts.filter((each) => concerns(each) || (each.networks.length === 0 && each.kind !== 'range')),
  };
}

/**
 * Plans the change of a NAD: the type of its IPAM, the address space if it shares one with other networks, and the other namespaces that use it.
 * All other keys stay.
 * @param space the address space; the NAD names it only if it is not the default
 * @param users namespaces whose pods use NADs of its namespace and network, which a derived pool does not serve by default
 */
function planNadChange(nad: SourceNad, space: string, users: ReadonlySet<string>): NadChange {
  const { key, network, config, place, cniConfig } = nad;
  const others = [...users].filter((namespace) => namespace !== nad.namespace).sort();
  const areServed = config.namespaces !== undefined || DEFAULT_GLOBAL_NAMESPACES.includes(nad.namespace);
  const named = {
    ...((config.addressSpace ?? network) !== space && { addressSpace: space }),
    ...(others.length > 0 && !areServed && { namespaces: others }),
  };
  const fields = Object.entries(place.ipam).flatMap(([field, value]): [string, unknown][] =>
    field === 'type' ? [[field, HOLDFAST_IPAM], ...Object.entries(named)] : [[field, value]],
  );
  const ipam = Object.fromEntries(fields);
  return {
    nad: key,
    network,
    space,
    path: place.path,
    removed: linesOf({ type: place.type }),
    added: linesOf({ type: ipam.type, ...named }),
    config: JSON.stringify(replaceObject(cniConfig, place.ipam, ipam)),
  };
}

function linesOf(fields: object): string[] {
  return Object.entries(fields).map(([field, value]) => `${JSON.stringify(field)}: ${JSON.stringify(value)}`);
}

/** Returns the config with one object replaced by another. */
function replaceObject(value: unknown, before: object, after: object): unknown {
  if (value === before) return after;
  if (Array.isArray(value)) return value.map((element) => replaceObject(element, before, after));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, replaceObject(each, before, after)]));
}
