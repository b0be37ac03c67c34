import { objectKey } from '../../api/meta.js';
import { interfaceOf } from '../../api/network-selection.js';
import type { Pod } from '../../api/pod.js';
import { type Address, formatAddress } from '../../ipam/core/address.js';
import { type Pool, subnetOf } from '../../ipam/core/pool.js';
import { type LivePods, selectionsIn } from './attachments.js';
import type { MovingNad } from './nads.js';
import type { LeftOut, LeftOutReason } from './plan-types.js';
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
  // what whereabouts has forgotten is in use all the same; what a NAD that has moved gives out is Holdfast's
  for (const { pod, nad, address } of shown.all()) {
    if (nad.moved) continue;
    const pool = view.targets.serving(nad, pod.metadata.namespace ?? '');
    const source = `network-status of pod ${objectKey(pod)}`;
    if (pool === undefined || refusalOf(pool, address, pod) !== undefined) continue;
    add(found, { pod, nad, pool, address, source, ...detailsOf(pod, address, view.pods) });
  }
  return found;
}

/** One pod stands once at an address, with the most that is known of it. */
function add({ byAddress }: Claimants, claimant: Claimant): void {
  const key = `${claimant.pool.addressSpace} ${formatAddress(claimant.address)}`;
  const there = byAddress.get(key) ?? [];
  const index = there.findIndex(({ pod }) => pod.metadata.uid === claimant.pod.metadata.uid);
  const before = there[index];
  if (before === undefined) byAddress.set(key, [...there, claimant]);
  else there[index] = { ...claimant, ...before };
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
    ...{ pod, nad, pool, address, source },
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

interface Shown {
  readonly pod: Pod;
  readonly nad: MovingNad;
  readonly address: Address;
}

/** The addresses that pods say they have on the networks of NADs. */
class ShownAddresses {
  /** By NAD and address. */
  readonly #byPlace = new Map<string, Shown[]>();

  constructor({ nads, pods }: View) {
    const byKey = new Map(nads.map((nad) => [nad.key, nad]));
    for (const pod of pods.all()) {
      for (const attachment of pods.attachments(pod)) {
        const nad = byKey.get(attachment.nad);
        if (nad === undefined) continue;
        for (const address of attachment.addresses) this.#add({ pod, nad, address });
      }
    }
  }

  *all(): Iterable<Shown> {
    for (const shown of this.#byPlace.values()) yield* shown;
  }

  podsWith(address: Address, nads: readonly MovingNad[]): Pod[] {
    const text = formatAddress(address);
    const shown = nads.flatMap(({ key }) => this.#byPlace.get(`${key} ${text}`) ?? []);
    return [...new Set(shown.map(({ pod }) => pod))];
  }

  #add(shown: Shown): void {
    const key = `${shown.nad.key} ${formatAddress(shown.address)}`;
    const there = this.#byPlace.get(key);
    if (there === undefined) this.#byPlace.set(key, [shown]);
    else there.push(shown);
  }
}
