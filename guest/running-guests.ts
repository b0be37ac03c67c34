import { BY_NETWORK } from '../addressing/directory/affected.js';
import type { PoolDirectory } from '../addressing/directory/directory.js';
import type { EvaluatedPool } from '../addressing/directory/pool-state.js';
import type { Pool } from '../addressing/pool/pool.js';
import { type IPAMClaim, claimGuestMacOf, claimOwnerOf, claimVmNetworkOf, macHeldSince } from '../api/ipam-claim.js';
import type { VirtualMachineInstance } from '../api/kubevirt.js';
import { byAgeAndKey, joinKey, objectKey } from '../api/meta.js';
import type { Lister } from '../kube/informers/cache.js';
import type { GuestListers } from './cached-view.js';
import { type Layer2Guest, type Layer2Guests, layer2GuestsOf } from './layer2-guests.js';

export interface GuestCaches extends GuestListers {
  /** With the index {@link BY_NETWORK}. */
  readonly claims: Lister<IPAMClaim>;
  readonly vmis: Pick<Lister<VirtualMachineInstance>, 'get'>;
  readonly directory: Pick<PoolDirectory, 'resolve' | 'poolsBySegment'>;
  /** Of the same caches. Without it, the guests of each VMI are found anew. */
  readonly remembered?: { of(vmi: VirtualMachineInstance): Layer2Guests };
}

/** A running guest on a layer-2 NAD, whose responders answer it. */
export interface ServedGuest extends Layer2Guest {
  readonly mac: string;
}

/** A running guest on such a NAD that responders do not answer. `message` says what to do. */
export interface RefusedGuest {
  readonly claim: IPAMClaim;
  readonly pool: Pool;
  readonly reason: 'MACAddressConflict' | 'MACAddressUnknown';
  readonly message: string;
}

/**
 * The phases in which libvirt may have a domain (KubeVirt 1.8, api/core/v1/types.go). virt-handler gets the VMI in `Scheduled`. The target of a
 * migration between clusters is in `WaitingForSync` while its guest still runs elsewhere.
 */
const PHASES_WITH_DOMAIN = ['Scheduled', 'Running', 'Unknown'];

/** The guests that the responders of a network answer, and those that they refuse. */
export interface FoundGuests {
  readonly served: readonly ServedGuest[];
  readonly refused: readonly RefusedGuest[];
  /** Guests of pools without `spec.guest.dhcp`. */
  readonly withoutDhcp: readonly Pick<ServedGuest, 'claim' | 'pool'>[];
}

/** Guests that are looked at in one step after their interfaces are known. */
const GUESTS_PER_STEP = 1_000;

/**
 * Finds the guests that the responders of a CNI network answer. Pools of one network, and networks on one layer-2 segment, share the wire, so a
 * MAC address has one guest on all of them. Pure: all responders, and the process `guest`, find the same. Yields between short steps.
 */
export function* findGuests(network: string, caches: GuestCaches): Generator<undefined, FoundGuests> {
  const found = yield* runningGuests(networksOnWire([network], caches.directory), caches);
  const owners = yield* macOwnersOf(found);
  const [served, refused, withoutDhcp]: [ServedGuest[], RefusedGuest[], Layer2Guest[]] = [[], [], []];
  for (const [index, guest] of found.entries()) {
    if (index % GUESTS_PER_STEP === 0) yield;
    const { claim, pool } = guest;
    if (claim.spec.network !== network) continue;
    const owner = hasMac(guest) ? owners.earlierThan(guest) : undefined;
    if (!isAnswered(guest)) withoutDhcp.push(guest);
    else if (!hasMac(guest)) refused.push({ claim, pool, reason: 'MACAddressUnknown', message: unknownMac(claim) });
    else if (owner !== undefined)
      refused.push({ claim, pool, reason: 'MACAddressConflict', message: sharedMac(guest, owner.claim) });
    // else the controller has not written the claim yet, or the claim was restored with the MAC address of an earlier guest
    else if (claimGuestMacOf(claim) === guest.mac) served.push(guest);
  }
  return { served, refused, withoutDhcp };
}

function* macOwnersOf(found: readonly Layer2Guest[]): Generator<undefined, MacOwners<ServedGuest>> {
  const owners = new MacOwners<ServedGuest>();
  for (const [index, guest] of found.entries()) {
    if (index % GUESTS_PER_STEP === 0) yield;
    if (hasMac(guest) && isAnswered(guest)) owners.add(guest);
  }
  return owners;
}

function isAnswered({ pool }: Layer2Guest): boolean {
  return pool.guest?.dhcp !== undefined;
}

function* runningGuests(networks: ReadonlySet<string>, caches: GuestCaches): Generator<undefined, Layer2Guest[]> {
  const found: Layer2Guest[] = [];
  const workloads = yield* workloadsOf(networks, caches);
  for (const key of workloads) {
    const vmi = caches.vmis.get(key);
    if (vmi === undefined || !isRunning(vmi)) continue;
    const guests = caches.remembered?.of(vmi) ?? layer2GuestsOf(vmi, caches);
    for (const network of networks) found.push(...(guests.get(network) ?? []));
    yield;
  }
  return found;
}

type Wires = Pick<PoolDirectory, 'poolsBySegment'>;

/** Tells which networks a change concerns, by the layer-2 segments of now and of the last call. */
export class KnownWires {
  #before: Wires = { poolsBySegment: new Map() };

  /** Returns the networks that changed, those that joined or left a segment, and those that share or shared one with them. */
  concernedBy(changed: Iterable<string>, { poolsBySegment }: Wires): Set<string> {
    const wires = [this.#before, { poolsBySegment }] as const;
    const all = [...changed, ...movedNetworks(...wires)];
    this.#before = wires[1];
    // a network that has left a segment may have had a MAC address there
    return new Set(wires.flatMap((each) => [...networksOnWire(all, each)]));
  }
}

/** Returns the networks, and those whose responders answer on a layer-2 segment of one of them. */
function networksOnWire(networks: readonly string[], wires: Wires): Set<string> {
  const shared = sharedSegments(wires);
  return new Set([...networks, ...networks.flatMap((network) => shared.get(network) ?? []).flat()]);
}

/** By network, for each state of the directory: there are thousands of segments, and few have more than one network. */
const SHARED_SEGMENTS = new WeakMap<Wires['poolsBySegment'], ReadonlyMap<string, readonly string[][]>>();

/** The networks that responders answer on each layer-2 segment of a network that has others, by network. */
function sharedSegments({ poolsBySegment }: Wires): ReadonlyMap<string, readonly string[][]> {
  const known = SHARED_SEGMENTS.get(poolsBySegment);
  if (known !== undefined) return known;
  const found = new Map<string, string[][]>();
  for (const pools of poolsBySegment.values()) {
    const answered = [...new Set(answeredNetworks(pools))];
    if (answered.length < 2) continue;
    for (const network of answered) {
      const segments = found.get(network);
      if (segments === undefined) found.set(network, [answered]);
      else segments.push(answered);
    }
  }
  SHARED_SEGMENTS.set(poolsBySegment, found);
  return found;
}

/** Returns the networks that joined or left a layer-2 segment of others: a MAC address may have another guest there now. */
function movedNetworks(before: Wires, after: Wires): string[] {
  if (before.poolsBySegment === after.poolsBySegment) return [];
  const segments = new Set([before, after].flatMap(({ poolsBySegment }) => [...poolsBySegment.keys()]));
  return [...segments].flatMap((segment) => {
    const old = new Set(answeredNetworks(before.poolsBySegment.get(segment)));
    const current = new Set(answeredNetworks(after.poolsBySegment.get(segment)));
    if (old.size < 2 && current.size < 2) return [];
    return [...new Set([...old, ...current])].filter((network) => old.has(network) !== current.has(network));
  });
}

function answeredNetworks(pools: Iterable<EvaluatedPool> = []): string[] {
  return [...pools].filter(({ hasResponders }) => hasResponders).map(({ network }) => network);
}

/** The keys of the workloads that have claims on the networks. */
function* workloadsOf(networks: ReadonlySet<string>, { claims }: GuestCaches): Generator<undefined, Set<string>> {
  const keys = new Set<string>();
  for (const [index, claim] of [...networks].flatMap((network) => claims.byIndex(BY_NETWORK, network)).entries()) {
    if (index % GUESTS_PER_STEP === 0) yield;
    const owner = claimOwnerOf(claim);
    if (owner !== undefined) keys.add(joinKey(claim.metadata.namespace, owner.name));
  }
  return keys;
}

/** Without a domain, no guest sends anything, and a VMI that cannot be scheduled must not take the answers of one that runs. */
function isRunning(vmi: VirtualMachineInstance): boolean {
  return PHASES_WITH_DOMAIN.includes(vmi.status?.phase ?? '');
}

function hasMac(guest: Layer2Guest): guest is ServedGuest {
  return guest.mac !== undefined;
}

function unknownMac(claim: IPAMClaim): string {
  const vmNetwork = claimVmNetworkOf(claim) ?? '';
  return (
    `The MAC address of interface "${vmNetwork}" is not known, so responders do not answer the guest: set macAddress in the VM's spec, which ` +
    'SR-IOV interfaces need'
  );
}

/** Names the other claim only to its own namespace. */
function sharedMac({ mac, claim }: ServedGuest, owner: IPAMClaim): string {
  const isOwn = owner.metadata.namespace === claim.metadata.namespace;
  const other = isOwn ? `IPAMClaim ${objectKey(owner)}` : 'a claim of another namespace';
  return `${mac} is also the MAC address of ${other}, which had it first, so responders do not answer this guest: give it another macAddress`;
}

/** A claim whose guest has a MAC address on its network. */
export interface ServedMac {
  readonly claim: IPAMClaim;
  /** Lower case, with colons. */
  readonly mac: string;
  /** The NAD of the interface. The layer-2 segment is unknown for some plugins. */
  readonly nad: { readonly segment?: string };
}

/**
 * Decides who has the answers for a MAC address: of the guests on one network or layer-2 segment, the one that had it first. Tenants write MAC
 * addresses, so who copies one must not take the answers of its owner. Every process decides the same.
 */
export class MacOwners<Guest extends ServedMac> {
  /** By MAC address and network, and by MAC address and segment. */
  readonly #first = new Map<string, Guest>();

  add(guest: Guest): void {
    for (const wire of wiresOf(guest)) {
      const first = this.#first.get(wire);
      if (first === undefined || isEarlier(guest, first)) this.#first.set(wire, guest);
    }
  }

  /** Returns the guest that had the MAC address of this one before; undefined if this one is the first. Call it when all are added. */
  earlierThan(guest: Guest): Guest | undefined {
    return wiresOf(guest)
      .map((wire) => this.#first.get(wire))
      .find((first) => first !== undefined && first !== guest);
  }
}

function wiresOf({ mac, claim, nad }: ServedMac): string[] {
  const network = `${mac} network ${claim.spec.network}`;
  return nad.segment === undefined ? [network] : [network, `${mac} segment ${nad.segment}`];
}

function isEarlier(one: ServedMac, other: ServedMac): boolean {
  const [a, b] = [one, other].map(({ claim, mac }) => macHeldSince(claim, mac)) as [number, number];
  return a === b ? byAgeAndKey(one.claim, other.claim) < 0 : a < b;
}
