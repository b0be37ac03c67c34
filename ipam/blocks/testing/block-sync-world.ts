import type { AddressBlock, BlockRelease } from '../../../api/address-block.js';
import type { LeaseOwner } from '../../../api/address-lease.js';
import type { KubeObject } from '../../../api/meta.js';
import { BlockBook } from '../block-book.js';
import { ClaimShortages, NodeLeaseCounts } from '../node-demand.js';
import { PoolSlices } from '../slice-occupancy.js';
import { createBlockSync } from '../sync.js';
import { parseAddress } from '../../../addressing/address/address.js';
import { readBlock } from '../../../addressing/block/block.js';
import { type LeaseRecord, createLease } from '../../../addressing/lease/lease.js';
import { LeaseBook } from '../../leases/lease-book.js';
import { PoolUsage } from '../../pools/usage.js';
import { Cache } from '../../../kube/informers/cache.js';
import { Client } from '../../../kube/client.js';
import type { Logger } from '../../../kube/log.js';
import type { SyncResult } from '../../../kube/controller-loop.js';
import { PoolDirectory } from '../../../addressing/directory/directory.js';
import type { AddressPool } from '../../../api/address-pool.js';
import { ADDRESS_BLOCKS, ADDRESS_POOLS, NODES } from '../../../kube/resources.js';
import { LaggingInformer } from '../../../kube/testing/lagging-informer.js';
import { MemoryTransport, targetOf } from '../../../kube/testing/memory-transport.js';
import type { ApiRequest } from '../../../kube/transport/transport.js';
import { ManualClock } from '../../../test/manual-clock.js';
import { writeObject } from '../../../test/object-tracker/tracker-writes.js';

const OWNER = { kind: 'Pod', namespace: 'a' } as const;

/** Blocks under the rules of the API server, and the sync that writes them. The test decides when the watch delivers events. */
export class BlockSyncWorld {
  readonly clock = new ManualClock(Date.UTC(2026, 0, 1));
  readonly pools = new Cache<AddressPool>();
  readonly nodes = new Cache<KubeObject>();
  readonly leases = new LeaseBook();
  readonly blocks = new BlockBook();
  readonly shortages = new ClaimShortages();
  readonly directory = new PoolDirectory({ pools: this.pools, networks: new Cache() });
  readonly policy = { minFree: 8, maxFree: 72, excessDelayMs: 180_000 };
  /** `<verb> <block>`, those that failed too. */
  readonly writes: string[] = [];
  readonly conflicts: string[] = [];
  readonly logged: string[] = [];
  isGateOpen = true;
  /** Called before each write. It may throw errors of a client. */
  beforeWrite: (write: string) => void = () => undefined;
  readonly #api = new MemoryTransport();
  readonly #tracker = this.#api.tracker;
  readonly #watch = new LaggingInformer(this.#tracker, { resource: ADDRESS_BLOCKS, transform: readBlock });
  #serial = 0;
  readonly #usage = new PoolUsage(this.leases, () => true);
  readonly #leaseCounts = new NodeLeaseCounts(this.leases);
  readonly #slices = new PoolSlices(this.leases);
  #sync: (pool: string) => Promise<SyncResult>;

  constructor() {
    this.#api.before = (request) => this.#receive(request);
    this.#watch.list();
    this.blocks.attach(this.#watch);
    this.#sync = this.elect();
  }

  /** Elects a new leader, which has no state. */
  elect(): (pool: string) => Promise<SyncResult> {
    const { pools, directory, nodes, blocks, shortages, policy, clock } = this;
    const note = (fields: object, text: string) => this.logged.push(`${JSON.stringify(fields)} ${text}`);
    this.#sync = createBlockSync({
      pools,
      directory,
      usage: this.#usage,
      nodes,
      blocks,
      leaseCounts: this.#leaseCounts,
      slices: this.#slices,
      shortages,
      client: new Client(this.#api),
      policy,
      gate: { isOpen: () => this.isGateOpen },
      clock,
      metrics: { written: () => undefined, conflicted: (kind) => this.conflicts.push(kind) },
      log: { info: note, warn: note, debug: () => undefined, error: note } as unknown as Logger,
    });
    return this.#sync;
  }

  /** Runs a sync, long enough after the last one. */
  sync(pool = 'blue'): Promise<SyncResult> {
    this.clock.advanceTo(this.clock.now() + 1_000);
    return this.#sync(pool);
  }

  syncAtOnce(pool = 'blue'): Promise<SyncResult> {
    return this.#sync(pool);
  }

  /** Syncs until nothing is written. */
  async settle(): Promise<void> {
    for (let before = -1, looks = 0; before !== this.writes.length; looks++) {
      if (looks > 50) throw new Error(`there is no end of writes: ${this.writes.slice(-4).join(', ')}`);
      before = this.writes.length;
      await this.sync();
    }
  }

  advance(ms: number): void {
    this.clock.advanceTo(this.clock.now() + ms);
  }

  putPool(pool: AddressPool): void {
    this.#tracker.put(ADDRESS_POOLS, pool);
    this.pools.set(pool);
    this.directory.changed();
  }

  dropPool(name: string): void {
    this.#tracker.remove(ADDRESS_POOLS, { name });
    this.pools.delete(name);
    this.directory.changed();
  }

  putNode(name: string, labels: Record<string, string> = {}): void {
    this.#tracker.put(NODES, { metadata: { name } });
    this.nodes.set({ metadata: { name, labels } });
  }

  dropNode(name: string): void {
    this.#tracker.remove(NODES, { name });
    this.nodes.delete(name);
  }

  /** Leases the address to a pod of the node, or to a claim if no node is given. */
  lease(address: string, node?: string): void {
    const owner: LeaseOwner = { ...OWNER, name: address, uid: address };
    const request = { address: parseAddress(address), addressSpace: 'blue', pool: 'blue' };
    const { object } = createLease(
      node === undefined ? { ...request, owner: { ...owner, kind: 'IPAMClaim' } } : { ...request, owner, node },
    );
    const version = String(++this.#serial);
    const metadata = { ...object.metadata, uid: `lease-${version}`, resourceVersion: version };
    this.leases.recordWrite({ ...object, metadata });
  }

  free(address: string): void {
    const found = [...this.leases.all()].find((lease: LeaseRecord) => lease.owner?.uid === address);
    if (found !== undefined) this.leases.forget(found.metadata.name, found.metadata.uid);
  }

  /** `<cidr> <node> <release state>`, sorted. */
  get lent(): string[] {
    const texts = [...this.#tracker.objects(ADDRESS_BLOCKS).values()].map(({ spec, status, metadata }) => {
      const going = metadata.deletionTimestamp === undefined ? '' : ' going';
      return `${spec.cidr} ${spec.node}${status?.release === undefined ? '' : ` ${status.release}`}${going}`;
    });
    return texts.sort();
  }

  /** The agent's answer. */
  answer(cidr: string, release: BlockRelease): void {
    const write = { verb: 'patch-status', name: this.#nameOf(cidr), body: { status: { release } } } as const;
    writeObject(this.#tracker, ADDRESS_BLOCKS, write);
    this.deliver();
  }

  /** `kubectl delete`. */
  delete(cidr: string): void {
    this.#tracker.delete(ADDRESS_BLOCKS, { name: this.#nameOf(cidr) });
    this.deliver();
  }

  /** By another leader. */
  create(block: AddressBlock): void {
    this.#tracker.create(ADDRESS_BLOCKS, block);
  }

  /** Delivers the pending events of the watch. */
  deliver(): void {
    this.#watch.deliver();
  }

  #nameOf(cidr: string): string {
    const found = [...this.#tracker.objects(ADDRESS_BLOCKS).values()].find(({ spec }) => spec.cidr === cidr);
    if (found === undefined) throw new RangeError(`${cidr} is not lent`);
    return found.metadata.name;
  }

  #receive({ method, path, body }: ApiRequest): void {
    if (method === 'GET') return;
    const { name, subresource } = targetOf(path);
    const { spec, status } = (body ?? {}) as Partial<AddressBlock>;
    const said = status === undefined ? '' : ` ${status.release ?? 'nothing'}`;
    const verb = subresource === undefined ? method.toLowerCase() : `patch-${subresource}`;
    const write = method === 'POST' ? `create ${spec?.cidr} ${spec?.node}` : `${verb} ${name}${said}`;
    this.writes.push(write);
    this.beforeWrite(write);
  }
}
