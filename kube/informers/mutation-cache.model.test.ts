import { expect } from 'chai';
import fc from 'fast-check';
import type { ObjectChange } from './informer.js';
import { MutationCache } from './mutation-cache.js';

interface Item {
  readonly metadata: {
    readonly name: string;
    readonly uid: string;
    readonly resourceVersion: string;
    readonly deletionTimestamp?: string;
  };
}

type Operation =
  /** `own`: this process writes, and gets the answer at once or late. `hold`: another finalizer delays the deletion. */
  | { do: 'write' | 'delete'; name: string; own: boolean; late: boolean; hold: boolean }
  | { do: 'answer' | 'advance' | 'repeat' | 'relist'; n: number };

const operation: fc.Arbitrary<Operation> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constantFrom('write', 'delete'),
      name: fc.constantFrom('a', 'a', 'a', 'b'),
      own: fc.boolean(),
      late: fc.boolean(),
      hold: fc.boolean(),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constantFrom('answer', 'advance', 'repeat', 'relist'), n: fc.nat({ max: 20 }) }),
  },
);

describe('MutationCache', () => {
  it('never goes back to an older version or a deleted object, and ends with what the API server has', () => {
    fc.assert(
      fc.property(fc.array(operation, { maxLength: 80 }), (operations) => {
        const world = new World();
        for (const each of operations) world.run(each);
        world.settle();
      }),
      { numRuns: 4_000 },
    );
  });
});

/** An API server, a watch that lags and repeats events, and a process whose answers may be late. */
class World {
  readonly #objects = new Map<string, Item>();
  readonly #log: { type: 'set' | 'removed'; object: Item }[] = [];
  /** What the watch has shown. */
  readonly #shown = new Map<string, Item>();
  readonly #seen = new Set<string>();
  #place = 0;
  #answers: (() => void)[] = [];
  #version = 8;
  /** What the cache has stored, what its changes amount to, and what it must have. */
  readonly #stored = new Map<string, Item>();
  readonly #replayed = new Map<string, Item>();
  readonly #expected = new Map<string, Item>();
  /** The newest version of each name that was heard of, of any object. */
  readonly #newest = new Map<string, number>();
  /** UIDs that are known to be gone: by the watch, or only by this process. */
  readonly #gone = new Map<string, 'shown' | 'own'>();
  readonly #cache = new MutationCache<Item>({
    get: (name) => this.#stored.get(name),
    set: (object) => {
      this.#stored.set(object.metadata.name, object);
      return object;
    },
    delete: ({ metadata }) => void this.#stored.delete(metadata.name),
  });

  constructor() {
    this.#cache.onChange(({ before, after }) => {
      const { name } = (after ?? before).metadata;
      expect(this.#replayed.get(name)).to.equal(before);
      if (after === undefined) this.#replayed.delete(name);
      else this.#replayed.set(name, after);
      if (before !== undefined && after !== undefined) expect(after.metadata.uid).to.equal(before.metadata.uid);
    });
  }

  run(operation: Operation): void {
    if ('n' in operation) this.#pass(operation.do, operation.n);
    else if (operation.do === 'write') this.#write(operation);
    else this.#delete(operation);
    this.#check();
  }

  settle(): void {
    this.#advance(Infinity);
    for (const answer of this.#answers.splice(0)) answer();
    // what was created by this process and deleted while no watch ran is found by live reads alone
    for (const { metadata } of [...this.#stored.values()])
      if (!this.#seen.has(metadata.uid) && this.#objects.get(metadata.name)?.metadata.uid !== metadata.uid)
        this.#forget(metadata.name, metadata.uid);
    this.#check();
    expect(this.#stored).to.deep.equal(this.#objects);
  }

  #check(): void {
    expect(this.#stored).to.deep.equal(this.#expected);
    expect(this.#replayed).to.deep.equal(this.#stored);
  }

  #pass(what: 'answer' | 'advance' | 'repeat' | 'relist', n: number): void {
    if (what === 'advance') this.#advance(n % 4);
    else if (what === 'relist') this.#relist();
    else if (what === 'answer') this.#answers.splice(n % Math.max(1, this.#answers.length), 1)[0]?.();
    else {
      const event = this.#log[n % Math.max(1, this.#place)];
      const isKnown = event && this.#shown.get(event.object.metadata.name)?.metadata.uid === event.object.metadata.uid;
      if (event?.type === 'set' && isKnown) this.#observe({ type: 'changed', object: event.object });
    }
  }

  #write({ name, own, late }: Extract<Operation, { name: string }>): void {
    const known = this.#objects.get(name);
    const version = this.#nextVersion();
    const object = { metadata: { uid: version, ...known?.metadata, name, resourceVersion: version } };
    this.#objects.set(name, object);
    this.#log.push({ type: 'set', object });
    // answers about an object that this process deleted are ignored: the watch shows it if another finalizer keeps it
    if (!own || known?.metadata.deletionTimestamp !== undefined) return;
    this.#answer(late, () => {
      this.#hear(object);
      this.#cache.wrote(object);
    });
  }

  /** This process deletes what it knows, whether it exists or not. */
  #delete({ name, own, late, hold }: Extract<Operation, { name: string }>): void {
    const object = this.#objects.get(name);
    const uid = own ? this.#stored.get(name)?.metadata.uid : object?.metadata.uid;
    if (uid === undefined) return;
    if (object?.metadata.uid === uid) this.#end(object, hold);
    // if the watch shows a delayed deletion before its answer, only the next event brings the object back
    const isDelayed = this.#objects.get(name)?.metadata.uid === uid;
    if (own) this.#answer(late && !isDelayed, () => this.#forget(name, uid));
  }

  #end({ metadata }: Item, hold: boolean): void {
    const isMarked = metadata.deletionTimestamp !== undefined;
    const marked = { metadata: { ...metadata, resourceVersion: this.#nextVersion(), deletionTimestamp: 'now' } };
    if (hold && !isMarked) this.#objects.set(metadata.name, marked);
    else this.#objects.delete(metadata.name);
    this.#log.push({ type: hold && !isMarked ? 'set' : 'removed', object: marked });
  }

  #forget(name: string, uid: string): void {
    if (this.#gone.get(uid) !== 'shown') this.#gone.set(uid, 'own');
    if (this.#expected.get(name)?.metadata.uid === uid) this.#expected.delete(name);
    this.#cache.forget(name, uid);
  }

  #advance(events: number): void {
    for (let n = 0; n < events && this.#place < this.#log.length; n++) {
      const { type, object } = this.#log[this.#place++]!;
      if (type === 'removed') this.#hide(object);
      else this.#show(object);
    }
  }

  /** Objects that were created and deleted since the last event are never seen. */
  #relist(): void {
    this.#place = this.#log.length;
    for (const object of [...this.#shown.values()]) if (!this.#objects.has(object.metadata.name)) this.#hide(object);
    for (const object of this.#objects.values()) this.#show(object);
  }

  #show(object: Item): void {
    const { name, uid, resourceVersion } = object.metadata;
    const before = this.#shown.get(name);
    if (before?.metadata.resourceVersion === resourceVersion) return;
    if (before !== undefined && before.metadata.uid !== uid) this.#hide(before);
    this.#shown.set(name, object);
    this.#seen.add(uid);
    this.#observe({ type: before?.metadata.uid === uid ? 'changed' : 'added', object });
  }

  #hide(object: Item): void {
    if (this.#shown.delete(object.metadata.name)) this.#observe({ type: 'removed', object });
  }

  #observe(change: ObjectChange<Item>): void {
    const { name, uid, deletionTimestamp } = change.object.metadata;
    if (change.type === 'removed') {
      this.#gone.set(uid, 'shown');
      if (this.#expected.get(name)?.metadata.uid === uid) this.#expected.delete(name);
    } else {
      // another finalizer kept the object that this process deleted
      if (deletionTimestamp !== undefined && this.#gone.get(uid) === 'own') this.#gone.delete(uid);
      this.#hear(change.object);
    }
    this.#cache.observe(change);
  }

  /** Of each name, the newest version counts, unless its object is gone. */
  #hear(object: Item): void {
    const { name, uid, resourceVersion } = object.metadata;
    if (this.#gone.has(uid) || Number(resourceVersion) <= (this.#newest.get(name) ?? 0)) return;
    this.#newest.set(name, Number(resourceVersion));
    this.#expected.set(name, object);
  }

  #nextVersion(): string {
    return String(this.#version++);
  }

  #answer(late: boolean, answer: () => void): void {
    if (late) this.#answers.push(answer);
    else answer();
  }
}
