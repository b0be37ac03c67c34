import { type KubeObject, objectKey } from '../../api/meta.js';
import type { WatchSpec } from '../informers/informers.js';
import type { ListVersions } from '../informers/reflector.js';
import type { ObjectTracker, TrackedEvent } from './object-tracker.js';
import { selectorOf } from './selectors.js';
import { TestInformer } from './test-informer.js';

/** An informer that lists the objects of a tracker, and reads their later changes, when a test says so. */
export class LaggingInformer<T extends KubeObject, S extends KubeObject = T> extends TestInformer<S> {
  override hasSynced = false;
  readonly #tracker: ObjectTracker;
  readonly #watched: WatchSpec<T, S>;
  readonly #isSelected: (object: KubeObject) => boolean;
  readonly #transform: (object: T) => S;
  readonly #listHandlers: ((versions: ListVersions) => () => void)[] = [];
  #waiting: (() => void)[] = [];
  #position = 0;
  #isStopped = false;

  constructor(tracker: ObjectTracker, watched: WatchSpec<T, S>) {
    super(watched.indexes);
    this.#tracker = tracker;
    this.#watched = watched;
    this.#isSelected = selectorOf(watched.resource, watched);
    // Without a transform, S is T by the default of the type parameter.
    this.#transform = watched.transform ?? ((object) => object as KubeObject as S);
  }

  start(): void {
    this.#isStopped = false;
  }

  stop(): Promise<void> {
    this.#isStopped = true;
    return Promise.resolve();
  }

  synced(): Promise<void> {
    return this.hasSynced ? Promise.resolve() : new Promise((resolve) => this.#waiting.push(resolve));
  }

  onList(handler: (versions: ListVersions) => () => void): void {
    this.#listHandlers.push(handler);
  }

  /** Lists the objects. Those that were created and deleted since the last list are never shown. */
  list(): void {
    if (this.#isStopped) return;
    const ends = this.#listHandlers.map((handler) => handler({ from: '', to: String(this.#tracker.version) }));
    const objects = this.#tracker.objects(this.#watched.resource);
    for (const key of this.cache.keys()) if (!objects.has(key)) this.delete(key);
    for (const object of objects.values()) this.#see(object);
    this.#position = this.#events.length;
    this.hasSynced = true;
    for (const resolve of this.#waiting.splice(0)) resolve();
    for (const end of ends) end();
  }

  /** Reads the next events, or the first list. One that only lists again reads no events. @returns whether there was anything to read */
  deliver(count = Infinity): boolean {
    if (!this.hasSynced) this.list();
    else if (this.#watched.relistMs === undefined && !this.#isStopped) return this.#read(count);
    return this.hasSynced;
  }

  /** Delivers an event again that it has read, unless the object was deleted since. */
  redeliver(index: number): void {
    const event = this.#events[index % Math.max(1, this.#position)];
    if (event === undefined || event.type === 'DELETED' || this.#position === 0) return;
    const object = this.#transform(event.object);
    if (this.cache.get(objectKey(object))?.metadata.uid === object.metadata.uid) this.tell({ type: 'changed', object });
  }

  get #events(): readonly TrackedEvent<T>[] {
    return this.#tracker.events(this.#watched.resource);
  }

  #read(count: number): boolean {
    const events = this.#events.slice(this.#position, this.#position + count);
    this.#position += events.length;
    for (const { type, object } of events) {
      if (type === 'DELETED') this.delete(objectKey(object));
      else this.#see(object);
    }
    return events.length > 0;
  }

  #see(object: T): void {
    const key = objectKey(object);
    if (!this.#isSelected(object)) this.delete(key);
    else if (this.cache.get(key)?.metadata.resourceVersion !== object.metadata.resourceVersion)
      this.set(this.#transform(object));
  }
}
