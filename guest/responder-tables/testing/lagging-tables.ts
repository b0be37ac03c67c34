import type { IPAMClaim } from '../../../api/ipam-claim.js';
import type { VirtualMachineInstance } from '../../../api/kubevirt.js';
import type { KubeObject } from '../../../api/meta.js';
import { shortHash } from '../../../api/names.js';
import { CLAIM_INDEXES } from '../../../cluster/watch-specs.js';
import type { LeaseRecord } from '../../../addressing/lease/lease.js';
import { PoolDirectory } from '../../../addressing/directory/directory.js';
import { NETWORK_INDEXES } from '../../../addressing/directory/affected.js';
import { Cache } from '../../../kube/informers/cache.js';
import { adminPool, cacheOf, nad } from '../../../test/objects/pool-objects.js';
import { Freshness } from '../../responder-process/freshness.js';
import { runAtOnce } from '../../../kube/run-in-slices.js';
import type { TableEntry } from '../protocol.js';
import type { TableStatement } from '../published-table.js';
import { buildTable, poolGuests } from '../table.js';

export const MAX_STALENESS_MS = 30_000;
const READ_MS = MAX_STALENESS_MS / 5;
const BEAT_MS = MAX_STALENESS_MS / 15;
export const KINDS = ['claims', 'vmis', 'leases'] as const;
export type Kind = (typeof KINDS)[number];

export const NAD = 'vms/data';
const SET = 'set';
const INDEX = 'index-uid';
const networks = cacheOf([nad(NAD, { name: 'blue', type: 'bridge' })]);
const directory = new PoolDirectory({
  pools: cacheOf([adminPool('blue', { cidr: '10.1.0.0/24', guest: { attachment: 'data', dhcp: {} } })]),
  networks,
});
const state = directory.stateOf('blue');
if (state?.kind !== 'served') throw new TypeError('pool blue does not serve');
const { pool } = state;

export interface Change {
  readonly kind: Kind;
  readonly key: string;
  readonly object: KubeObject | undefined;
}

interface StoredTable {
  readonly statement: TableStatement;
  readonly entries: ReadonlyMap<string, TableEntry>;
}

/** The objects that `guest` publishes, with their resourceVersions. */
export class Published {
  version = 1;
  tableVersion = 1;
  table: StoredTable | undefined;
  indexVersion = 1;
  index = { beat: 1, ageMs: Infinity, versions: {} as Record<string, string> };
}

/** A replica of `guest`, with its watches, which stop and continue one by one, and its writes, which may be held up on their way. */
export class LaggingGuest {
  readonly #published: Published;
  readonly #caches = {
    claims: new Cache<IPAMClaim>({ ...CLAIM_INDEXES, ...NETWORK_INDEXES }),
    vmis: new Cache<VirtualMachineInstance>(),
    leases: new Cache<LeaseRecord>(),
  };
  readonly #seen = { claims: 0, vmis: 0, leases: 0 };
  readonly #progress = { claims: 0, vmis: 0, leases: 0 };
  #beatAt = -Infinity;
  #confirmed: number | undefined;
  #held: (() => void)[] | undefined;
  leads = false;
  /** Its API server has no connection to etcd: watches go on to progress, and show nothing new; no write succeeds. */
  isCutOff = false;
  readonly stopped = new Set<Kind>();

  constructor(published: Published) {
    this.#published = published;
  }

  /** Its next writes arrive only when they are released. It waits for them, also if it no longer leads. */
  hold(): void {
    this.#held ??= [];
  }

  release(): void {
    const held = this.#held ?? [];
    this.#held = undefined;
    for (const write of held) write();
  }

  get isHealthy(): boolean {
    return this.leads && !this.isCutOff && this.stopped.size === 0 && this.#held === undefined;
  }

  follow(changes: readonly Change[], now: number): void {
    for (const kind of KINDS) {
      if (this.stopped.has(kind)) continue;
      this.#progress[kind] = now;
      if (this.isCutOff) continue;
      for (const change of changes.slice(this.#seen[kind])) if (change.kind === kind) this.#apply(change);
      this.#seen[kind] = changes.length;
    }
    if (!this.leads || this.isCutOff || (this.#held?.length ?? 0) > 0) return;
    this.#work(now);
  }

  #work(now: number): void {
    const published = this.#published;
    this.#confirmed ??= published.index.beat;
    const guests = runAtOnce(poolGuests(pool, { ...this.#caches, networks, directory }));
    const { entries } = runAtOnce(buildTable(pool, guests));
    const version = shortHash(JSON.stringify([...entries]), 16);
    const ageMs = now - Math.min(...Object.values(this.#progress));
    const after = { index: INDEX, beat: this.#confirmed };
    if (published.table?.statement.version !== version) {
      const { tableVersion } = published;
      this.#send(() => {
        if (published.tableVersion !== tableVersion) return;
        published.tableVersion++;
        published.table = { statement: { version, after, ageMs }, entries };
      });
    }
    if (now - this.#beatAt < BEAT_MS) return;
    this.#beatAt = now;
    const { indexVersion } = published;
    const index = { beat: this.#confirmed + 1, ageMs, versions: { [SET]: version } };
    this.#send(() => {
      this.#confirmed = undefined;
      if (published.indexVersion !== indexVersion) return;
      published.indexVersion++;
      published.index = index;
      this.#confirmed = index.beat;
    });
  }

  #send(write: () => void): void {
    if (this.#held === undefined) write();
    else this.#held.push(write);
  }

  #apply({ kind, key, object }: Change): void {
    const cache = this.#caches[kind] as unknown as Cache<KubeObject>;
    if (object === undefined) cache.delete(key);
    else cache.set(object);
  }
}

/** A responder with its watch of the table and its reads of the index, and its packet helper. */
export class LaggingResponder {
  #now = 0;
  #readAt = -Infinity;
  #used: StoredTable | undefined;
  readonly #freshness = new Freshness(SET, MAX_STALENESS_MS, { now: () => this.#now });
  /** Its API server has no connection to etcd: it shows nothing new, and answers no read. */
  isCutOff = false;
  /** Its watch shows nothing. */
  isStopped = false;
  entries: ReadonlyMap<string, TableEntry> = new Map();
  /** The addresses that their guests get without a probe while the table is fresh, by MAC address. */
  readonly confirmed = new Map<string, string>();
  freshUntil = 0;

  follow({ table, index }: Published, now: number): void {
    this.#now = now;
    if (!this.isCutOff && now - this.#readAt >= READ_MS) {
      this.#readAt = now;
      this.#freshness.read({ index: INDEX, ...index }, now);
    }
    if (!this.isCutOff && !this.isStopped && table !== undefined && table !== this.#used) this.#use(table);
    const forMs = this.#freshness.forMs();
    if (forMs > 0) this.freshUntil = now + forMs;
  }

  /** A guest uses an address, which all hosts hear. */
  hear(mac: string, address: string): void {
    for (const [other, confirmed] of this.confirmed)
      if (other !== mac && confirmed === address) this.confirmed.delete(other);
  }

  #use(table: StoredTable): void {
    this.#used = table;
    this.entries = table.entries;
    this.#freshness.use(table.statement);
    this.freshUntil = this.#now + this.#freshness.forMs();
    for (const [mac, address] of this.confirmed)
      if (this.entries.get(mac)?.ipv4?.address !== address) this.confirmed.delete(mac);
  }
}
