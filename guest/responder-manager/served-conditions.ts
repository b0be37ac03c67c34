import { formatAddress } from '../../addressing/address/address.js';
import { leaseName } from '../../addressing/lease/lease-name.js';
import { type LeaseRecord, readLease } from '../../addressing/lease/lease.js';
import type { Pool } from '../../addressing/pool/pool.js';
import type { ReasonOf } from '../../api/conditions.js';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import { type KubeObject, joinKey, objectKey } from '../../api/meta.js';
import {
  GUEST_CONFIGURED,
  GUEST_SERVED,
  IPS_ALLOCATED,
  NETWORK_DATA_WRITTEN,
  RESPONDERS_NAMESPACE,
} from '../../api/names.js';
import { conditionOf, writeConditions } from '../../cluster/claim-conditions.js';
import { BY_WORKLOAD } from '../../cluster/watch-specs.js';
import type { Client } from '../../kube/client.js';
import type { Clock } from '../../kube/clock.js';
import type { Sync } from '../../kube/controller-loop.js';
import type { Informer } from '../../kube/informers/informer.js';
import { ADDRESS_LEASES } from '../../kube/resources.js';
import { TimeSlice, forEachInSlices, forEachParallel, runInSlices } from '../../kube/run-in-slices.js';
import { onAffectedWorkloads } from '../layer2-guests.js';
import { leasedAddresses, shownAddresses } from '../leased-addresses.js';
import { type GuestCaches, type RefusedGuest, type ServedGuest, KnownWires, findGuests } from '../running-guests.js';
import { fairOrder } from '../fair-order.js';
import { BY_RESPONDER_SET, type GuestViews, type Reconciler, guestCachesOf } from '../views.js';
import { BY_NOT_SERVED } from '../watch-specs.js';
import { responderSetName } from '../../api/responders.js';

/** Changes of one network that come within this time are looked at together: each look reads all of its claims. */
const BATCH_MS = 1_000;

export interface ServedConditionsDeps {
  readonly views: GuestViews;
  /** The StatefulSets of responders. */
  readonly sets: Pick<Informer<KubeObject>, 'cache' | 'onChange'>;
  readonly client: Pick<Client, 'find' | 'patch'>;
  readonly clock: Clock;
}

/** A running guest that no responder answers, or not for all of its addresses. */
type NotServed = Pick<RefusedGuest, 'claim' | 'message'> & { readonly reason: ReasonOf<'GuestServed'> };

/** By the UID of the claim, which may change meanwhile: the errors of those whose leases cannot be read. */
type UnreadClaims = ReadonlyMap<string | undefined, unknown>;

/** By the UID of the claim. */
interface RefusedClaims {
  readonly refused: ReadonlyMap<string | undefined, NotServed>;
  readonly unread: UnreadClaims;
}

const NONE_REFUSED: RefusedClaims = { refused: new Map(), unread: new Map() };

/** Tells by the condition GuestServed which running guests the responders of a network refuse. Responders themselves write nothing. */
export class ServedConditions implements Reconciler {
  readonly name = 'served';
  readonly workers = 2;
  readonly #deps: ServedConditionsDeps;
  readonly #caches: GuestCaches;
  /** The networks that changed since the last batch. */
  readonly #changed = new Set<string>();
  #isDue = false;
  readonly #wires = new KnownWires();

  constructor(deps: ServedConditionsDeps) {
    this.#deps = deps;
    this.#caches = guestCachesOf(deps.views);
  }

  listen(add: (keys: Iterable<string>) => void): void {
    const { watched, directory } = this.#deps.views;
    const { vmis, claims, networks } = watched;
    const collect = (changed: readonly string[]) => this.#collect(changed, add);
    const networksOf = (workload: string) =>
      claims.cache.byIndex(BY_WORKLOAD, workload).map(({ spec }) => spec.network);
    claims.onChange(({ object }) => collect([object.spec.network]));
    vmis.onChange(({ object }) => collect(networksOf(objectKey(object))));
    onAffectedWorkloads({ claims: claims.cache, vmis: vmis.cache }, { networks, directory }, (workloads) =>
      collect(workloads.flatMap(networksOf)),
    );
    this.#deps.sets.onChange(({ object: { metadata } }) => {
      collect(watched.pools.cache.byIndex(BY_RESPONDER_SET, metadata.name).map(({ spec }) => spec.network));
    });
  }

  *allKeys(): Generator<string> {
    for (const { spec } of this.#deps.views.watched.claims.cache.list()) yield spec.network;
  }

  createSync(): Sync {
    return async (network: string, signal: AbortSignal) => {
      const found = await this.#findRefused(network, signal);
      if (found === undefined) return undefined;
      const { refused, unread } = found;
      const { cache } = this.#deps.views.watched.claims;
      const told = [...refused.values()].map(({ claim }) => claim);
      const slice = new TimeSlice(this.#deps.clock);
      const failures = [...unread.values()];
      // a claim that cannot be read, or that a tenant changes all the time, must not delay the conditions of the others
      for (const key of new Set([...cache.byIndex(BY_NOT_SERVED, network), ...told].map(objectKey))) {
        try {
          const claim = cache.get(key);
          const uid = claim?.metadata.uid;
          if (claim?.spec.network === network && !unread.has(uid)) await this.#write(claim, refused.get(uid));
          if (slice.isOver) await slice.renew();
        } catch (error) {
          failures.push(error);
        }
      }
      if (failures.length > 0) throw failures[0];
      return undefined;
    };
  }

  /** Undefined if the term of leadership ends. */
  async #findRefused(network: string, signal: AbortSignal): Promise<RefusedClaims | undefined> {
    const { views, clock } = this.#deps;
    const pools = views.directory.poolsOf(network);
    if (!pools.some(({ state }) => state.kind === 'served' && state.pool.guest !== undefined)) return NONE_REFUSED;
    const found = await runInSlices(findGuests(network, this.#caches), clock, signal);
    if (found === undefined) return undefined;
    const withoutSet = found.served.filter(({ pool }) => !this.#hasSet(pool));
    const withSet = found.served.filter(({ pool }) => this.#hasSet(pool));
    const { unleased, unread } = await findUnleasedGuests(withSet, this.#deps.client, signal);
    const notServed: NotServed[] = [...found.refused, ...unleased];
    const unanswered = [...found.withoutDhcp, ...withoutSet];
    const tell = (guest: (typeof unanswered)[number]) => notServed.push(...withoutResponders(guest));
    if (!(await forEachInSlices(unanswered, tell, clock, signal))) return undefined;
    return { refused: new Map(notServed.map((each) => [each.claim.metadata.uid, each])), unread };
  }

  #hasSet(pool: Pool): boolean {
    return this.#deps.sets.cache.get(joinKey(RESPONDERS_NAMESPACE, responderSetName(pool))) !== undefined;
  }

  async #write(claim: IPAMClaim, refused: NotServed | undefined): Promise<void> {
    const { client, clock } = this.#deps;
    const value = refused && { status: 'False' as const, reason: refused.reason, message: refused.message };
    await writeConditions(client, claim, { [GUEST_SERVED]: value }, clock.wall());
  }

  /** @param networks without one, networks may have moved to other segments */
  #collect(networks: readonly string[], add: (keys: Iterable<string>) => void): void {
    for (const network of networks) this.#changed.add(network);
    if (this.#isDue) return;
    this.#isDue = true;
    this.#deps.clock.setTimer(BATCH_MS, () => {
      this.#isDue = false;
      const networks = this.#wires.concernedBy(this.#changed, this.#deps.views.directory);
      this.#changed.clear();
      add(networks);
    });
  }
}

/** Why nothing answers a guest, unless it gets or has its addresses in another way. */
function withoutResponders({ claim, pool }: Pick<ServedGuest, 'claim' | 'pool'>): NotServed[] {
  const isConfigured = claim.status?.conditions?.some(
    ({ type, status }) => type === NETWORK_DATA_WRITTEN || (type === GUEST_CONFIGURED && status === 'True'),
  );
  if (isConfigured === true) return [];
  const [why, remedy] =
    pool.guest?.dhcp === undefined
      ? ['has no spec.guest.dhcp', 'Ask an administrator to set it']
      : ['has no responders, as its events say', 'Ask an administrator to follow these events'];
  const message =
    `AddressPool ${pool.name} ${why}, so nothing answers DHCP requests of the guest. ${remedy}, give the VM network data, ` +
    'or configure the addresses of the claim in the guest';
  return [{ claim, reason: 'NoResponders', message }];
}

/** Guests whose leases are read in one pass, as many of each namespace. More claims lose their leases only if somebody deletes all of them. */
const MAX_GUESTS = 256;
const CONCURRENT_READS = 8;

/**
 * Finds the guests that responders do not answer for all addresses of their claims. Reads leases live, but only those of claims that ipam refuses: the
 * condition IPsAllocated is False while a claim lacks a lease, and its change wakes this process.
 */
async function findUnleasedGuests(
  guests: readonly ServedGuest[],
  client: Pick<Client, 'find'>,
  signal: AbortSignal,
): Promise<{ readonly unleased: readonly NotServed[]; readonly unread: UnreadClaims }> {
  const refused = guests.filter(({ claim }) => conditionOf(claim, IPS_ALLOCATED)?.status === 'False');
  const unleased: NotServed[] = [];
  const unread = new Map<string | undefined, unknown>();
  const read = fairOrder(refused, ({ claim }) => claim.metadata.namespace ?? '').slice(0, MAX_GUESTS);
  await forEachParallel(read, CONCURRENT_READS, async (guest) => {
    try {
      const lacked = await lackedAddresses(guest, client, signal);
      if (lacked.length > 0)
        unleased.push({ claim: guest.claim, reason: 'AddressNotLeased', message: unleasedMessage(lacked) });
    } catch (error) {
      unread.set(guest.claim.metadata.uid, error);
    }
  });
  return { unleased, unread };
}

async function lackedAddresses(
  { claim, pool }: ServedGuest,
  client: Pick<Client, 'find'>,
  signal: AbortSignal,
): Promise<string[]> {
  const shown = shownAddresses(claim) ?? [];
  const leases = new Map<string, LeaseRecord>();
  for (const address of shown) {
    const name = leaseName(pool.addressSpace, address);
    const lease = await client.find(ADDRESS_LEASES, { name }, { signal, tenant: claim.metadata.namespace ?? '' });
    if (lease !== undefined) leases.set(name, readLease(lease));
  }
  const leased = leasedAddresses(claim, pool, leases).map(formatAddress);
  return shown.map(formatAddress).filter((address) => !leased.includes(address));
}

function unleasedMessage(lacked: readonly string[]): string {
  return `Responders do not tell the guest ${lacked.join(' and ')}, because ${lacked.length > 1 ? 'they are' : 'it is'} not leased to the claim: see its condition ${IPS_ALLOCATED}`;
}
