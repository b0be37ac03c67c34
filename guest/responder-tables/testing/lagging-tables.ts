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
import type { CurrentTables } from '../published-index.js';
import type { TableStatement } from '../published-table.js';
import { buildTable, poolGuests } from '../table.js';

export const MAX_STALENESS_MS = 30_000;
const READ_MS = MAX_STALENESS_MS / 5;
const BEAT_MS = MAX_STALENESS_MS / 15;
/** The longest pause between two builds. */
export const BUILD_MS = MAX_STALENESS_MS / 5;
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
  index: CurrentTables & { beat: number } = { beat: 1, ageMs: Infinity, versions: {}, behind: {} };
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
  #built: { version: string; at: number; showsUntil: number } | undefined;
  leads = false;
  /** Something that alters no table changes all the time, so it never has all changes, and builds so seldom. 0: it has all. Infinity: its pool is invalid. */
  buildMs = 0;
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
    return this.leads && this.buildMs === 0 && !this.isCutOff && this.stopped.size === 0 && this.#held === undefined;
  }

  follow(changes: readonly Change[], now: number): void {
    for (const kind of KINDS) {
      if (this.stopped.has(kind)) continue;
      this.#progress[kind] = now;
      if (this.isCutOff) continue;
      for (const change of changes.slice(this.#seen[kind])) if (change.kind === kind) this.#apply(change);
      this.#seen[kind] = changes.length;
    }
    if (!this.leads) this.#built = undefined;
    if (!this.leads || this.isCutOff || (this.#held?.length ?? 0) > 0) return;
    this.#work(now);
  }

  #work(now: number): void {
    const published = this.#published;
    this.#confirmed ??= published.index.beat;
    const showsUntil = Math.min(...Object.values(this.#progress));
    if (now - (this.#built?.at ?? -Infinity) >= this.buildMs) this.#build(now, showsUntil);
    if (now - this.#beatAt < BEAT_MS || this.#built === undefined) return;
    this.#beatAt = now;
    const { indexVersion } = published;
    const { version } = this.#built;
    const tables =
      this.buildMs > 0
        ? { versions: {}, behind: { [SET]: { version, ageMs: now - this.#built.showsUntil } } }
        : { versions: { [SET]: version }, behind: {} };
    const index = { beat: this.#confirmed + 1, ageMs: now - showsUntil, ...tables };
    this.#send(() => {
      this.#confirmed = undefined;
      if (published.indexVersion !== indexVersion) return;
      published.indexVersion++;
      published.index = index;
      this.#confirmed = index.beat;
    });
  }

  #build(now: number, showsUntil: number): void {
    const published = this.#published;
    const guests = runAtOnce(poolGuests(pool, { ...this.#caches, networks, directory }));
    const { entries } = runAtOnce(buildTable(pool, guests));
    const version = shortHash(JSON.stringify([...entries]), 16);
    this.#built = { version, at: now, showsUntil };
    if (published.table?.statement.version === version) return;
    const { tableVersion } = published;
    const after = this.#confirmed === undefined ? undefined : { index: INDEX, beat: this.#confirmed };
    this.#send(() => {
      if (published.tableVersion !== tableVersion) return;
      published.tableVersion++;
      published.table = { statement: { version, after, ageMs: now - showsUntil }, entries };
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
