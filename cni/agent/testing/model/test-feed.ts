import type { KubeObject } from '../../../../api/meta.js';
import type { ObjectChange } from '../../../../kube/informer.js';
import type { ListVersions } from '../../../../kube/reflector.js';

/** An informer that lists and delivers events when a test says so. */
export abstract class TestFeed<S extends KubeObject> {
  hasSynced = false;
  protected isRunning = false;
  readonly cache = new Map<string, S>();
  readonly #handlers: ((change: ObjectChange<S>) => void)[] = [];
  readonly #listHandlers: ((versions: ListVersions) => () => void)[] = [];
  #waiting: (() => void)[] = [];

  start(): void {
    this.isRunning = true;
  }

  stop(): Promise<void> {
    this.isRunning = false;
    return Promise.resolve();
  }

  synced(): Promise<void> {
    return this.hasSynced ? Promise.resolve() : new Promise((resolve) => this.#waiting.push(resolve));
  }

  onChange(handler: (change: ObjectChange<S>) => void): void {
    this.#handlers.push(handler);
    for (const object of this.cache.values()) handler({ type: 'added', object });
  }

  onList(handler: (versions: ListVersions) => () => void): void {
    this.#listHandlers.push(handler);
  }

  /** Lists the objects; those that were created and deleted since the last list are never shown. */
  list(): void {
    if (!this.isRunning) return;
    const ends = this.#listHandlers.map((handler) => handler({ from: '', to: this.version() }));
    this.read();
    this.hasSynced = true;
    for (const resolve of this.#waiting.splice(0)) resolve();
    for (const end of ends) end();
  }

  /** Delivers events. @param count number of events; default: all */
  abstract deliver(count?: number): void;

  /** Brings the cache up to date. */
  protected abstract read(): void;

  /** Returns the version of a list. */
  protected version(): string {
    return '';
  }

  protected put(object: S): void {
    const { name, uid } = object.metadata;
    if (this.cache.has(name) && this.cache.get(name)!.metadata.uid !== uid) this.remove(name);
    const before = this.cache.get(name);
    this.cache.set(name, object);
    this.#tell(before === undefined ? { type: 'added', object } : { type: 'changed', object, before });
  }

  protected remove(name: string): void {
    const object = this.cache.get(name);
    if (this.cache.delete(name) && object !== undefined) this.#tell({ type: 'removed', object, before: object });
  }

  #tell(change: ObjectChange<S>): void {
    for (const handler of this.#handlers) handler(change);
  }
}
