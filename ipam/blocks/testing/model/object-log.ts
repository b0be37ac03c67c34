import type { ObjectChange } from '../../../../kube/informer.js';

interface Versioned {
  readonly metadata: { readonly name: string; readonly uid: string; readonly resourceVersion: string };
}

interface Entry<R> {
  readonly name: string;
  /** undefined if the object was deleted. */
  readonly record: R | undefined;
}

/** The objects of a kind, and the log of their changes. */
export class ObjectLog<R extends Versioned> {
  readonly entries: Entry<R>[] = [];
  readonly current = new Map<string, R>();

  append(name: string, record: R | undefined): void {
    this.entries.push({ name, record });
    if (record === undefined) this.current.delete(name);
    else this.current.set(name, record);
  }

  list(): R[] {
    return [...this.current.values()];
  }
}

/** A cache that lists consistently, and reads later changes when the model lets it. */
export class LaggingCache<R extends Versioned> {
  hasSynced = false;
  readonly #log: ObjectLog<R>;
  readonly #isWatched: (record: R) => boolean;
  readonly #onChange: (change: ObjectChange<R>) => void;
  readonly #cache = new Map<string, R>();
  #place = 0;

  constructor(
    log: ObjectLog<R>,
    isWatched: (record: R) => boolean = () => true,
    onChange: (change: ObjectChange<R>) => void = () => undefined,
  ) {
    this.#log = log;
    this.#isWatched = isWatched;
    this.#onChange = onChange;
  }

  get(name: string): R | undefined {
    return this.#cache.get(name);
  }

  list(): R[] {
    return [...this.#cache.values()];
  }

  /** Reads the first list, or the given number of further changes. */
  read(count = Infinity): void {
    if (!this.hasSynced) {
      this.relist();
      return;
    }
    const end = Math.min(this.#log.entries.length, this.#place + count);
    for (const { name, record } of this.#log.entries.slice(this.#place, end)) this.#set(name, record);
    this.#place = end;
  }

  /** Lists again after a lost watch. Objects that were created and deleted in between are never seen. */
  relist(): void {
    for (const name of [...this.#cache.keys()]) if (!this.#log.current.has(name)) this.#set(name, undefined);
    for (const record of this.#log.list()) this.#set(record.metadata.name, record);
    this.#place = this.#log.entries.length;
    this.hasSynced = true;
  }

  #set(name: string, given: R | undefined): void {
    const record = given !== undefined && this.#isWatched(given) ? given : undefined;
    const before = this.#cache.get(name);
    if (before?.metadata.resourceVersion === record?.metadata.resourceVersion) return;
    if (before !== undefined && before.metadata.uid !== record?.metadata.uid) {
      this.#cache.delete(name);
      this.#onChange({ type: 'removed', object: before, before });
    }
    if (record === undefined) return;
    this.#cache.set(name, record);
    const isSame = before?.metadata.uid === record.metadata.uid;
    this.#onChange(isSame ? { type: 'changed', object: record, before } : { type: 'added', object: record });
  }
}
