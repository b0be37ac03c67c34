import { ADDRESS_POOL_WATCH } from '../../../../cluster/watch-specs.js';
import { PROBE_LIMITS } from '../../../../api/limits.js';
import type { IPAMClaim } from '../../../../api/ipam-claim.js';
import { createClaimSync } from '../../sync.js';
import { CLAIM_PODS, ClaimPods } from '../../running/claim-pods.js';
import { UnreadableAddresses } from '../../claim-leases.js';
import { RestoreHolds } from '../../shown/restore-holds.js';
import { allClaimKeys, claimKeyOf, keysOfLease, keysOfNetworks } from '../../triggers.js';
import { ClaimWaitList } from '../../wait-list.js';
import type { LeaseRecord } from '../../../../addressing/lease/lease.js';
import { LeaseBook } from '../../../leases/lease-book.js';
import { PoolDirectory } from '../../../../addressing/directory/directory.js';
import { SERVED_CLAIM_WATCH } from '../../claim-transform.js';
import { ADDRESS_LEASE_WATCH } from '../../../views.js';
import { Client } from '../../../../kube/client.js';
import type { EventRecorder } from '../../../../kube/events.js';
import { silentLogger } from '../../../../kube/log.js';
import type { SyncResult } from '../../../../kube/controller-loop.js';
import { LaggingInformer } from '../../../../kube/testing/lagging-informer.js';
import type { ClientTransport } from '../../../../kube/transport/transport.js';
import { type ParsedNad } from '../../../../cluster/transforms.js';
import { KNOWN_KUBEVIRT } from '../../../../test/objects/launcher-pods.js';
import { cacheOf } from '../../../../test/objects/pool-objects.js';
import type { Kind, IpamWorld } from './world.js';

/** An address cools down at least twice as long. */
export const MAX_STALENESS_MS = 30_000;

/** An IPAM process that acts as the leader: its caches lag behind, and its queue has no clock. */
export class IpamModelProcess {
  readonly queue = new Set<string>();
  /** Keys whose last sync failed. */
  readonly retries = new Set<string>();
  /** Keys of claims that wait for the answers to probes. */
  readonly awaiting = new Set<string>();
  readonly events: string[] = [];
  readonly waitList: ClaimWaitList;
  readonly book = new LeaseBook();
  readonly directory: PoolDirectory;
  readonly claims;
  readonly gates = { stickyMAC: true };
  /** The number of addresses that stopped VMs hold. */
  heldByStopped = 0;
  readonly #informers: Record<Kind, { deliver(count: number): boolean }>;
  readonly #restoreHolds: RestoreHolds;
  readonly #createSync: () => (key: string) => Promise<SyncResult>;
  #sync!: (key: string) => Promise<SyncResult>;

  constructor(
    world: IpamWorld,
    wire: ClientTransport,
    networks: readonly ParsedNad[],
    isGateOpen: () => boolean = () => true,
  ) {
    const claims = new LaggingInformer(world.tracker, SERVED_CLAIM_WATCH);
    const leases = new LaggingInformer(world.tracker, ADDRESS_LEASE_WATCH);
    const pools = new LaggingInformer(world.tracker, ADDRESS_POOL_WATCH);
    // pods of its namespaces may refer to claims
    const pods = new LaggingInformer(world.tracker, { ...CLAIM_PODS, labelSelector: '' });
    for (const informer of [claims, leases, pools, pods]) informer.list();
    this.claims = claims;
    this.#informers = { ipamclaims: claims, addressleases: leases, addresspools: pools, pods };
    this.waitList = new ClaimWaitList((keys) => this.add(keys));
    this.directory = new PoolDirectory({ pools: pools.cache, networks: cacheOf(networks) });
    const claimPods = new ClaimPods(pods, claims.cache);
    this.book.attach(leases, { now: () => world.now });
    const restoreHolds = new RestoreHolds({
      ...{ claims: claims.cache, book: this.book, directory: this.directory },
      clock: { now: () => world.now },
    });
    this.#restoreHolds = restoreHolds;
    this.directory.onChange((changed) => restoreHolds.onNetworksChange(changed));
    claims.onChange((change) => restoreHolds.onClaimChange(change));
    this.book.onChange((change) => restoreHolds.onLeaseChange(change));
    claims.onChange((change) => this.add(claimKeyOf(change)));
    pools.onChange(() => this.directory.changed());
    this.directory.onChange((changed) => this.add(keysOfNetworks(changed, claims.cache)));
    claimPods.onChange((key) => this.add([key]));
    this.book.onChange((change: { before?: LeaseRecord; after?: LeaseRecord }) =>
      this.add(keysOfLease(change, this.waitList)),
    );
    this.book.onAddressFreed((space, address) => this.add(this.waitList.claimsToWake(space, address)));
    const events: Pick<EventRecorder, 'event'> = {
      event: ({ kind }, type, reason, message) => void this.events.push(`${type} ${kind} ${reason}: ${message}`),
    };
    const { gates, book } = this;
    const unreadable = new UnreadableAddresses(book, { now: () => world.now });
    const dependencies: Parameters<typeof createClaimSync>[0] = {
      claims: claims.cache,
      book,
      unreadable,
      directory: this.directory,
      pods: claimPods,
      client: new Client(wire),
      waitList: this.waitList,
      restoreHolds,
      gate: { isOpen: isGateOpen },
      heldByStopped: () => this.heldByStopped,
      kubevirt: KNOWN_KUBEVIRT,
      maxStalenessMs: MAX_STALENESS_MS,
      get stickyMAC() {
        return gates.stickyMAC;
      },
      clock: { now: () => world.now, wall: () => world.now },
      events,
      metrics: {
        countStep: () => undefined,
        countAllocation: () => undefined,
        countRefusal: () => undefined,
        countReleases: () => undefined,
        countProbe: () => undefined,
      },
      latency: { onAllocated: () => undefined },
      log: silentLogger,
    };
    this.#createSync = () => createClaimSync(dependencies);
    this.beginTerm();
  }

  /** It becomes the leader. Its caches stay as they are, and changes before were not queued. */
  beginTerm(): void {
    for (const keys of [this.queue, this.retries, this.awaiting]) keys.clear();
    this.waitList.clear();
    this.#sync = this.#createSync();
    void this.#restoreHolds.start();
    this.addAll();
  }

  add(keys: Iterable<string>): void {
    for (const key of keys) this.queue.add(key);
  }

  addAll(): void {
    this.add(allClaimKeys(this.claims.cache, this.book));
  }

  deliver(kind: Kind, count: number): boolean {
    return this.#informers[kind].deliver(count);
  }

  deliverAll(): boolean {
    return (['addresspools', 'addressleases', 'ipamclaims', 'pods'] as const)
      .map((kind) => this.deliver(kind, Infinity))
      .includes(true);
  }

  /** The first queued key, else one whose last sync failed. */
  get nextKey(): string | undefined {
    const [key] = this.queue.size > 0 ? this.queue : this.retries;
    return key;
  }

  async syncNext(): Promise<void> {
    if (this.nextKey !== undefined) await this.syncFromQueue(this.nextKey);
  }

  /** Syncs the key even if it is not queued. */
  async syncFromQueue(key: string): Promise<void> {
    this.queue.delete(key);
    this.retries.delete(key);
    this.awaiting.delete(key);
    try {
      const result = await this.sync(key);
      // one that waits longer waits for something else
      const afterMs = result !== undefined && 'requeueAfterMs' in result ? result.requeueAfterMs : Infinity;
      if (afterMs <= PROBE_LIMITS.timeoutMs && this.#isProbed(key)) this.awaiting.add(key);
      if (result !== undefined && 'retry' in result) this.retries.add(key);
    } catch (error) {
      if (error instanceof TypeError || (error as Error).name === 'Violation') throw error;
      this.retries.add(key);
    }
  }

  sync(key: string): Promise<SyncResult> {
    return this.#sync(key);
  }

  #isProbed(key: string): boolean {
    const claim = this.claim(key);
    const isShown = (claim?.status?.ips?.length ?? 0) > 0;
    const leases = claim === undefined ? [] : this.book.ofExactClaim(claim);
    return !isShown && leases.some(({ probe, releasedAt }) => probe === 'requested' && releasedAt === undefined);
  }

  claim(key: string): IPAMClaim | undefined {
    return this.claims.cache.get(key);
  }
}
