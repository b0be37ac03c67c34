import { type KubeObject, objectKey } from '../../api/meta.js';
import { Cache, type Indexes } from '../informers/cache.js';
import type { ObjectChange } from '../informers/informer.js';

/** A source of changes that a test makes. */
export class TestSource<C> {
  readonly #handlers: ((change: C) => void)[] = [];

  onChange(handler: (change: C) => void): void {
    this.#handlers.push(handler);
  }

  /** Calls the handlers. */
  tell(change: C): void {
    for (const handler of this.#handlers) handler(change);
  }
}

/** An informer whose cache is filled by the test. */
export class TestInformer<S extends KubeObject> extends TestSource<ObjectChange<S>> {
  hasSynced = true;
  lastProgress = 0;
  restarts = 0;
  readonly cache: Cache<S>;

  constructor(indexes?: Indexes<S>) {
    super();
    this.cache = new Cache<S>(indexes);
  }

  /** While it reports cached objects, as before the end of a first list, {@link hasSynced} is false. */
  override onChange(handler: (change: ObjectChange<S>) => void): void {
    super.onChange(handler);
    const { hasSynced } = this;
    this.hasSynced = false;
    for (const object of this.cache.list()) handler({ type: 'added', object });
    this.hasSynced = hasSynced;
  }

  set(object: S): void {
    const known = this.cache.get(objectKey(object));
    if (known !== undefined && known.metadata.uid !== object.metadata.uid) this.delete(objectKey(object));
    const before = this.cache.set(object);
    this.tell(before === undefined ? { type: 'added', object } : { type: 'changed', object, before });
  }

  delete(key: string): void {
    const object = this.cache.delete(key);
    if (object !== undefined) this.tell({ type: 'removed', object, before: object });
  }

  restartWatch(): void {
    this.restarts++;
  }
}
