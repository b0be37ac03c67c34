import { omitUndefined } from '../../api/json.js';
import { objectKey } from '../../api/meta.js';
import { interfaceNameOf } from '../../api/networks/network-selection.js';
import type { Pod } from '../../api/pod.js';
import { type Address, formatAddress, sameAddress } from '../../addressing/address/address.js';
import { type Pool, subnetOf } from '../../addressing/pool/pool.js';
import { notLeasableSubject } from '../../addressing/allocator/refusal-messages.js';
import { readableSelectionsIn } from '../claim-users.js';
import { groupBy } from '../group-by.js';
import { type ActivePods, type ReportedAddress, ReportedAddresses } from './active-pods.js';
import type { SourceNad } from './nads.js';
import type { LeftOut, LeftOutReason } from './plan-types.js';
import { type Allocation, cniNetworksOf } from './allocations.js';
import type { TargetPools } from './target-pools.js';

/** A pod that uses an address, or that whereabouts records for it. */
export interface AddressUser {
  readonly pod: Pod;
  readonly nad: SourceNad;
  /** The pool that will serve it. */
  readonly pool: Pool;
  readonly address: Address;
  readonly source: string;
  readonly containerID?: string;
  readonly interface?: string;
  readonly mac?: string;
  /** `namespace/name` of the IPAMClaim that whereabouts says it is for. */
  readonly claim?: string;
  /** True if whereabouts names the pod; otherwise only the pod reports it, and its tenant may write that report. */
  readonly isRecorded: boolean;
  /** Other possible addresses: all but one belonged to an earlier pod of its name, and the pod has not reported yet. */
  readonly alternatives?: readonly Address[];
}

interface AddressUsers {
  /** By address space and address. */
  readonly byAddress: Map<string, AddressUser[]>;
  readonly leftOut: LeftOut[];
}

interface PlanContext {
  readonly nads: readonly SourceNad[];
  readonly pods: ActivePods;
  readonly targets: TargetPools;
}

/** Finds the user of each address from the allocations of whereabouts and from the reports of active pods. */
export function findAddressUsers(allocations: readonly Allocation[], view: PlanContext): AddressUsers {
  const found: AddressUsers = { byAddress: new Map(), leftOut: [] };
  const shown = new ReportedAddresses(view);
  for (const allocation of allocations) {
    const result = resolveAllocation(allocation, view, shown);
    if ('reason' in result) found.leftOut.push(result);
    else addUser(found, result);
  }
  markAlternatives(found, view);
  addReported(found, shown, view);
  return found;
}

/** Adds reported addresses that whereabouts does not record. Holdfast leases the addresses of a changed NAD itself. */
function addReported(found: AddressUsers, shown: ReportedAddresses, view: PlanContext): void {
  const taken = new InterfaceCounts(found);
  const leave = ({ pod, nad, address }: ReportedAddress, message: string) => {
    const source = `network-status of pod ${objectKey(pod)}`;
    const networks = [nad.network];
    found.leftOut.push({ reason: 'unconfirmed', source, message, networks, address: formatAddress(address) });
  };
  for (const each of shown.unrequested) {
    if (!each.nad.hasMoved) leave(each, 'the pod does not request this interface');
  }
  for (const each of shown.all()) {
    const { pod, nad, address } = each;
    if (nad.hasMoved) continue;
    const pool = view.targets.serving(nad, pod.metadata.namespace ?? '');
    if (pool === undefined || leaseProblemOf(pool, address, pod) !== undefined) continue;
    const source = `network-status of pod ${objectKey(pod)}`;
    const claimant = { ...each, pool, source, isRecorded: false, ...reportedDetailsOf(pod, address, view.pods) };
    const there = found.byAddress.get(addressKeyOf(claimant)) ?? [];
    const own = there.some((other) => other.pod.metadata.uid === pod.metadata.uid);
    const recorded = there.find((other) => other.isRecorded);
    if (own) addUser(found, claimant);
    else if (recorded !== undefined) leave(each, `whereabouts has allocated it to pod ${objectKey(recorded.pod)}`);
    else if (!taken.hasRoom(claimant)) leave(each, 'whereabouts allocates no more addresses to one interface');
    else {
      taken.count(claimant);
      addUser(found, claimant);
    }
  }
}

/** Merges several entries of one pod for one address. */
function addUser({ byAddress }: AddressUsers, claimant: AddressUser): void {
  const key = addressKeyOf(claimant);
  const there = byAddress.get(key) ?? [];
  const index = there.findIndex(({ pod }) => pod.metadata.uid === claimant.pod.metadata.uid);
  const before = there[index];
  if (before === undefined) byAddress.set(key, [...there, claimant]);
  else there[index] = { ...claimant, ...before };
}

function addressKeyOf({ pool, address }: Pick<AddressUser, 'pool' | 'address'>): string {
  return `${pool.addressSpace} ${formatAddress(address)}`;
}

/** Marks pods that have not reported yet and that have more addresses on an interface than whereabouts allocates. */
function markAlternatives({ byAddress }: AddressUsers, { pods }: PlanContext): void {
  const unreported = [...byAddress.values()]
    .flat()
    .filter((each) => each.interface !== undefined && !pods.interfaceWithAddress(each.pod, each.address));
  for (const group of groupBy(unreported, interfaceKey).values()) {
    const [first] = group;
    if (first === undefined || group.length <= maxAddressesOf(first)) continue;
    const addresses = group.map(({ address }) => address);
    for (const claimant of group) {
      const alternatives = addresses.filter((each) => !sameAddress(each, claimant.address));
      const there = byAddress.get(addressKeyOf(claimant)) ?? [];
      there[there.indexOf(claimant)] = { ...claimant, alternatives };
    }
  }
}

/** Counts the addresses of each interface. */
class InterfaceCounts {
  readonly #counts = new Map<string, number>();

  constructor({ byAddress }: AddressUsers) {
    for (const claimant of [...byAddress.values()].flat()) this.count(claimant);
  }

  count(claimant: AddressUser): void {
    const key = interfaceKey(claimant);
    this.#counts.set(key, (this.#counts.get(key) ?? 0) + 1);
  }

  hasRoom(claimant: AddressUser): boolean {
    return (this.#counts.get(interfaceKey(claimant)) ?? 0) < maxAddressesOf(claimant);
  }
}

function interfaceKey({ pod, nad, address, interface: podInterface = '' }: AddressUser): string {
  return [pod.metadata.uid, nad.key, address.family, podInterface].join(' ');
}

/** whereabouts allocates one address of each range to an interface. */
function maxAddressesOf({ nad, address }: AddressUser): number {
  const own = nad.config.ranges.filter(({ range }) => range.includes(':') === (address.family === 6));
  return Math.max(1, own.length);
}

function resolveAllocation(allocation: Allocation, view: PlanContext, shown: ReportedAddresses): AddressUser | LeftOut {
  const { address, source, nads, containerID, claim } = allocation;
  const entry = { source, networks: cniNetworksOf(nads), address: formatAddress(address) };
  const leave = (reason: LeftOutReason, message: string): LeftOut => ({ reason, message, ...entry });
  const pod = podOf(allocation, view, shown);
  if (typeof pod === 'string') return leave(allocation.pod === undefined ? 'unreadable' : 'pod-gone', pod);
  const attachment = view.pods.interfaceWithAddress(pod, address);
  if (attachment === undefined && reportsOtherAddresses(pod, allocation, view)) {
    return leave('stale', `pod ${objectKey(pod)} has other addresses: an earlier pod of that name had this one`);
  }
  const nad = nadOf(pod, allocation, attachment?.nad);
  const pool = view.targets.serving(nad, pod.metadata.namespace ?? '');
  if (pool === undefined) return leave('no-nad', `no pool can serve pod ${objectKey(pod)} on NAD ${nad.key}`);
  const refusal = leaseProblemOf(pool, address, pod);
  if (refusal !== undefined) return leave(...refusal);
  const recorded = {
    interface: allocation.interface,
    ...reportedDetailsOf(pod, address, view.pods),
    containerID,
    claim,
  };
  return { pod, nad, pool, address, source, isRecorded: true, ...omitUndefined(recorded) };
}

function leaseProblemOf(pool: Pool, address: Address, pod: Pod): [LeftOutReason, string] | undefined {
  const subnet = subnetOf(pool, address);
  if (subnet === undefined) return ['outside', `it is in no subnet of AddressPool ${pool.name}`];
  if (subnet.requestable.has(address.value)) return undefined;
  const message = `${notLeasableSubject(address, subnet, pool)}: pod ${objectKey(pod)} keeps it without a lease`;
  return ['not-leasable', message];
}

/** Returns what the pod itself reports about the interface. */
function reportedDetailsOf(pod: Pod, address: Address, pods: ActivePods): Pick<AddressUser, 'interface' | 'mac'> {
  const { interface: podInterface, mac } = pods.interfaceWithAddress(pod, address) ?? {};
  return omitUndefined({ interface: podInterface, mac });
}

/** @returns the pod, or the reason why there is none */
function podOf({ pod: key, address, nads }: Allocation, { pods }: PlanContext, shown: ReportedAddresses): Pod | string {
  if (key !== undefined) return pods.get(key) ?? `pod ${key} is gone or has terminated`;
  const found = shown.podsWith(address, nads);
  if (found.length === 1 && found[0] !== undefined) return found[0];
  return `it names no pod, and ${found.length === 0 ? 'no pod reports' : 'several pods report'} the address`;
}

/** Returns true if the pod reports other addresses on the networks of the allocation. */
function reportsOtherAddresses(pod: Pod, { nads, address: { family } }: Allocation, { pods }: PlanContext): boolean {
  const keys = new Set(nads.map(({ key }) => key));
  return pods
    .reportedInterfaces(pod)
    .some(({ nad, addresses }) => keys.has(nad) && addresses.some((each) => each.family === family));
}

/** Finds the NAD of the address among those that share the range. */
function nadOf(pod: Pod, { nads, interface: podInterface }: Allocation, reported: string | undefined): SourceNad {
  const byKey = (key: string | undefined) => nads.find((nad) => nad.key === key);
  const selections = readableSelectionsIn(pod);
  const asked = selections.filter((each) => podInterface === undefined || interfaceNameOf(each) === podInterface);
  const candidates = [
    byKey(reported),
    ...asked.map(({ nad }) => byKey(`${nad.namespace}/${nad.name}`)),
    nads.find(({ namespace }) => namespace === pod.metadata.namespace),
    nads[0],
  ];
  const found = candidates.find((nad) => nad !== undefined);
  if (found === undefined) throw new TypeError('an address in use belongs to no NAD');
  return found;
}
