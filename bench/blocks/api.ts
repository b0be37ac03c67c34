import type { AddressBlock, BlockWrite } from '../../api/address-block.js';
import type { AddressLease, LeaseWrite } from '../../api/address-lease.js';
import type { KubeObject, ObjectPatch, ObjectWrite } from '../../api/meta.js';
import { type BlockRecord, readBlock } from '../../addressing/block/block.js';
import { type LeaseRecord, readLease } from '../../addressing/lease/lease.js';
import type { Random } from '../../kube/clock.js';
import { StatusError } from '../../kube/errors.js';
import { ADDRESS_BLOCKS, ADDRESS_LEASES } from '../../kube/resources.js';
import { type Kind, ObjectTracker } from '../../kube/testing/object-tracker.js';
import { skewed } from '../../test/seeded-random.js';
import { writeObject } from '../../test/object-tracker/tracker-writes.js';
import type { VirtualTime } from './virtual-time.js';

/** Latencies of requests and watches. */
export interface Latency {
  /** Median time in ms of a request or an answer on the network. */
  readonly oneWayMs: number;
  /** The spread of {@link skewed}. */
  readonly spread: number;
  /** Lags of watches in ms. Nodes are evenly divided among these. */
  readonly watchMs: readonly number[];
}

/** An event of a watch. */
export interface SimulatedEvent<R> {
  readonly at: number;
  /** The current object, or its last version if it was deleted. */
  readonly record: R;
  readonly isGone: boolean;
}

type Done<R> = (record: R | undefined) => void;

/** The API server with leases and blocks. Writes take effect when the request arrives, in virtual time. */
export class SimulatedApi {
  readonly leases: SimulatedKind<AddressLease, LeaseRecord>;
  readonly blocks: SimulatedKind<AddressBlock, BlockRecord>;
  readonly #time: VirtualTime;
  readonly #latency: Latency;
  readonly #random: Random;

  constructor(time: VirtualTime, latency: Latency, random: Random) {
    this.#time = time;
    this.#latency = latency;
    this.#random = random;
    this.leases = new SimulatedKind(time, ADDRESS_LEASES, readLease);
    this.blocks = new SimulatedKind(time, ADDRESS_BLOCKS, readBlock);
  }

  /** Writes a lease. @param done gets the new object @param lost is called if another writer was faster */
  writeLease(write: LeaseWrite, done: Done<LeaseRecord>, lost: () => void): void {
    this.#send(() => this.leases.write(write), done, lost);
  }

  /** Reads a lease. @param done gets undefined if there is none */
  readLease(name: string, done: Done<LeaseRecord>): void {
    this.#send(() => this.leases.records.get(name), done, () => done(undefined)); // oxfmt-ignore
  }

  writeBlock(write: BlockWrite, done: Done<BlockRecord>, lost: () => void): void {
    this.#send(() => this.blocks.write(write), done, lost);
  }

  /** Lists objects. @param items number of objects @param done gets the time at which the list was made */
  list(items: number, done: (at: number) => void): void {
    this.#time.after(this.#oneWay(), () => {
      const madeAt = this.#time.now();
      this.#time.after(this.#oneWay() + items * LIST_ITEM_MS, () => done(madeAt));
    });
  }

  #send<R>(serve: () => R | undefined, done: Done<R>, lost: () => void): void {
    this.#time.after(this.#oneWay(), () => {
      const answer = outcomeOf(serve);
      this.#time.after(this.#oneWay(), () => {
        if (answer.isDone) done(answer.record);
        else lost();
      });
    });
  }

  #oneWay(): number {
    return skewed(this.#random, this.#latency.oneWayMs, this.#latency.spread);
  }
}

/** Measured: 20,000 leases are listed and parsed in about 150 ms. */
const LIST_ITEM_MS = 0.0075;

/** The parsed objects of a kind, and all events so far. */
class SimulatedKind<O extends KubeObject, R> {
  readonly news: SimulatedEvent<R>[] = [];
  /** By name. */
  readonly records = new Map<string, R>();
  readonly #tracker = new ObjectTracker();
  readonly #kind: Kind<O>;
  readonly #handlers: ((news: SimulatedEvent<R>) => void)[] = [];

  constructor(time: VirtualTime, kind: Kind<O>, read: (object: O) => R) {
    this.#kind = kind;
    this.#tracker.observe(kind, ({ type, object }) => {
      const { name } = object.metadata;
      const isGone = type === 'DELETED';
      const record = isGone ? this.records.get(name)! : read(object);
      if (isGone) this.records.delete(name);
      else this.records.set(name, record);
      const news = { at: time.now(), record, isGone };
      this.news.push(news);
      for (const handler of this.#handlers) handler(news);
    });
  }

  objects(): Iterable<O> {
    return this.#tracker.objects(this.#kind).values();
  }

  /** Adds a handler, which gets each event at once. */
  onNews(handler: (news: SimulatedEvent<R>) => void): void {
    this.#handlers.push(handler);
  }

  write(write: ObjectWrite<O> | ObjectPatch<'patch-status'>): R | undefined {
    const after = writeObject(this.#tracker, this.#kind, write);
    return after && this.records.get(after.metadata.name);
  }
}

function outcomeOf<R>(serve: () => R | undefined): { isDone: true; record: R | undefined } | { isDone: false } {
  try {
    return { isDone: true, record: serve() };
  } catch (error) {
    if (error instanceof StatusError) return { isDone: false };
    throw error;
  }
}
