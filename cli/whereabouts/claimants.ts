import { objectKey } from '../../api/meta.js';
import { interfaceOf } from '../../api/network-selection.js';
import type { Pod } from '../../api/pod.js';
import { type Address, formatAddress, sameAddress } from '../../ipam/core/address.js';
import { type Pool, subnetOf } from '../../ipam/core/pool.js';
import { type LivePods, selectionsIn } from './attachments.js';
import type { MovingNad } from './nads.js';
import type { LeftOut, LeftOutReason } from './plan-types.js';
import { type Shown, ShownAddresses } from './shown.js';
import type { Sighting } from './sightings.js';
import type { Targets } from './targets.js';

/** A pod that has an address, or is said to. */
export interface Claimant {
  readonly pod: Pod;
  readonly nad: MovingNad;
  /** That will serve it. */
  readonly pool: Pool;
  readonly address: Address;
  readonly source: string;
  readonly containerID?: string;
  readonly interface?: string;
  readonly mac?: string;
  /** `namespace/name` of the IPAMClaim that whereabouts says it is for. */
  readonly claim?: string;
  /** whereabouts says so; otherwise the pod alone does, whose annotations its tenant may write. */
  readonly named: boolean;
  /** It can have this one or these, and has not said which: all but one were an earlier pod's of its name. */
  readonly alternatives?: readonly Address[];
}

export interface Claimants {
  /** By address space and address. */
  readonly byAddress: Map<string, Claimant[]>;
  readonly leftOut: LeftOut[];
}

interface View {
  readonly nads: readonly MovingNad[];
  readonly pods: LivePods;
  readonly targets: Targets;
}

/** Who has which address: what whereabouts says of pods that live, and what these say themselves. */
export function findClaimants(sightings: readonly Sighting[], view: View): Claimants {
  const found: Claimants = { byAddress: new Map(), leftOut: [] };
  const shown = new ShownAddresses(view);
  for (const sighting of sightings) {
    const result = judge(sighting, view, shown);
    if ('reason' in result) found.leftOut.push(result);
    else add(found, result);
  }
  markAlternatives(found, view);
  addShown(found, shown, view);
  return found;
}

/** What whereabouts has forgotten is in use all the same; what a NAD that has moved gives out is Holdfast's. */
function addShown(found: Claimants, shown: ShownAddresses, view: View): void {
  const taken = new InterfaceCounts(found);
  const leave = ({ pod, nad, address }: Shown, message: string) => {
    const source = `network-status of pod ${objectKey(pod)}`;
    found.leftOut.push({
      ...{ reason: 'unconfirmed', source, message, networks: [nad.network], address: formatAddress(address) },
    });
  };
  for (const each of shown.notAskedFor) {
    if (!each.nad.moved) leave(each, 'the pod asks for no such interface');
  }
  for (const each of shown.all()) {
    const { pod, nad, address } = each;
    if (nad.moved) continue;
    const pool = view.targets.serving(nad, pod.metadata.namespace ?? '');
    if (pool === undefined || refusalOf(pool, address, pod) !== undefined) continue;
    const source = `network-status of pod ${objectKey(pod)}`;
    const claimant = { ...each, pool, source, named: false, ...detailsOf(pod, address, view.pods) };
    const there = found.byAddress.get(keyOf(claimant)) ?? [];
    const own = there.some((other) => other.pod.metadata.uid === pod.metadata.uid);
    const named = there.find((other) => other.named);
    if (own) add(found, claimant);
    else if (named !== undefined) leave(each, `whereabouts says that pod ${objectKey(named.pod)} has it`);
    else if (!taken.hasRoom(claimant)) leave(each, 'whereabouts gives an interface no more addresses');
    else {
      taken.count(claimant);
      add(found, claimant);
    }
  }
}

/** One pod stands once at an address, with the most that is known of it. */
function add({ byAddress }: Claimants, claimant: Claimant): void {
  const key = keyOf(claimant);
  const there = byAddress.get(key) ?? [];
  const index = there.findIndex(({ pod }) => pod.metadata.uid === claimant.pod.metadata.uid);
  const before = there[index];
  if (before === undefined) byAddress.set(key, [...there, claimant]);
  else there[index] = { ...claimant, ...before };
}

function keyOf({ pool, address }: Pick<Claimant, 'pool' | 'address'>): string {
  return `${pool.addressSpace} ${formatAddress(address)}`;
}

/** A pod that has not reported yet, with more addresses on an interface than whereabouts gives it. */
function markAlternatives({ byAddress }: Claimants, { pods }: View): void {
  const groups = new Map<string, Claimant[]>();
  for (const claimant of [...byAddress.values()].flat()) {
    if (claimant.interface === undefined || pods.withAddress(claimant.pod, claimant.address)) continue;
    const key = interfaceKey(claimant);
    groups.set(key, [...(groups.get(key) ?? []), claimant]);
  }
  for (const group of groups.values()) {
    const [first] = group;
    if (first === undefined || group.length <= addressesOf(first)) continue;
    const addresses = group.map(({ address }) => address);
    for (const claimant of group) {
      const alternatives = addresses.filter((each) => !sameAddress(each, claimant.address));
      const there = byAddress.get(keyOf(claimant)) ?? [];
      there[there.indexOf(claimant)] = { ...claimant, alternatives };
    }
  }
}

/** How many addresses each interface has. */
class InterfaceCounts {
  readonly #counts = new Map<string, number>();

  constructor({ byAddress }: Claimants) {
    for (const claimant of [...byAddress.values()].flat()) this.count(claimant);
  }

  count(claimant: Claimant): void {
    const key = interfaceKey(claimant);
    this.#counts.set(key, (this.#counts.get(key) ?? 0) + 1);
  }

  hasRoom(claimant: Claimant): boolean {
    return (this.#counts.get(interfaceKey(claimant)) ?? 0) < addressesOf(claimant);
  }
}

function interfaceKey({ pod, nad, address, interface: podInterface = '' }: Claimant): string {
  return [pod.metadata.uid, nad.key, address.family, podInterface].join(' ');
}

/** whereabouts gives an interface one of each range. */
function addressesOf({ nad, address }: Claimant): number {
  const own = nad.config.ranges.filter(({ range }) => range.includes(':') === (address.family === 6));
  return Math.max(1, own.length);
}

function judge(sighting: Sighting, view: View, shown: ShownAddresses): Claimant | LeftOut {
  const { address, source, nads, containerID, claim } = sighting;
  const leave = (reason: LeftOutReason, message: string): LeftOut => ({
    reason,
    source,
    message,
    networks: [...new Set(nads.map(({ network }) => network))],
    address: formatAddress(address),
  });
  const pod = podOf(sighting, view, shown);
  if (typeof pod === 'string') return leave(sighting.pod === undefined ? 'unreadable' : 'pod-gone', pod);
  const attachment = view.pods.withAddress(pod, address);
  if (attachment === undefined && showsOthers(pod, sighting, view)) {
    return leave('stale', `pod ${objectKey(pod)} has other addresses: it was an earlier one's of its name`);
  }
  const nad = nadOf(pod, sighting, attachment?.nad);
  const pool = view.targets.serving(nad, pod.metadata.namespace ?? '');
  if (pool === undefined) return leave('no-nad', `no pool can serve pod ${objectKey(pod)} by NAD ${nad.key}`);
  const refusal = refusalOf(pool, address, pod);
  if (refusal !== undefined) return leave(...refusal);
  return {
    ...{ pod, nad, pool, address, source, named: true },
    ...(sighting.interface !== undefined && { interface: sighting.interface }),
    ...detailsOf(pod, address, view.pods),
    ...(containerID !== undefined && { containerID }),
    ...(claim !== undefined && { claim }),
  };
}

function refusalOf(pool: Pool, address: Address, pod: Pod): [LeftOutReason, string] | undefined {
  const subnet = subnetOf(pool, address);
  if (subnet === undefined) return ['outside', `it is in no subnet of AddressPool ${pool.name}`];
  if (subnet.requestable.has(address.value)) return undefined;
  const message = `AddressPool ${pool.name} leases it to nobody: pod ${objectKey(pod)} keeps it without a lease`;
  return ['not-leasable', message];
}

/** What the pod itself says of the interface. */
function detailsOf(pod: Pod, address: Address, pods: LivePods): Pick<Claimant, 'interface' | 'mac'> {
  const { interface: podInterface, mac } = pods.withAddress(pod, address) ?? {};
  return {
    ...(podInterface !== undefined && { interface: podInterface }),
    ...(mac !== undefined && { mac }),
  };
}

/** The pod, or why there is none. */
function podOf({ pod: ref, address, nads }: Sighting, { pods }: View, shown: ShownAddresses): Pod | string {
  if (ref !== undefined) {
    const key = `${ref.namespace}/${ref.name}`;
    return pods.get(key) ?? `pod ${key} is gone, or has ended`;
  }
  const found = shown.podsWith(address, nads);
  if (found.length === 1 && found[0] !== undefined) return found[0];
  return `it names no pod, and ${found.length === 0 ? 'no pod shows' : 'several pods show'} the address`;
}

/** Of the networks in question it has reported addresses, and this one is not among them. */
function showsOthers(pod: Pod, { nads, address: { family } }: Sighting, { pods }: View): boolean {
  const keys = new Set(nads.map(({ key }) => key));
  return pods
    .attachments(pod)
    .some(({ nad, addresses }) => keys.has(nad) && addresses.some((each) => each.family === family));
}

/** By which of the NADs that share the range the pod has the address. */
function nadOf(pod: Pod, { nads, interface: podInterface }: Sighting, reported: string | undefined): MovingNad {
  const byKey = (key: string | undefined) => nads.find((nad) => nad.key === key);
  const selections = selectionsIn(pod);
  const asked = selections.filter((each) => podInterface === undefined || interfaceOf(each) === podInterface);
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
