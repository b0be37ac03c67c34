import type { KubeObject } from '../../../api/meta.js';
import { Cache } from '../../../kube/cache.js';
import type { ObjectChange } from '../../../kube/informer.js';

/** A cache that tells of its changes, as that of an informer. */
export class FollowedCache<S extends KubeObject> {
  readonly cache = new Cache<S>();
  readonly #handlers: ((change: ObjectChange<S>) => void)[] = [];

  onChange(handler: (change: ObjectChange<S>) => void): void {
    this.#handlers.push(handler);
  }

  set(object: S): void {
    const before = this.cache.set(object);
    this.#tell(before === undefined ? { type: 'added', object } : { type: 'changed', object, before });
  }

  delete(key: string): void {
    const object = this.cache.delete(key);
    if (object !== undefined) this.#tell({ type: 'removed', object, before: object });
  }

  #tell(change: ObjectChange<S>): void {
    for (const handler of this.#handlers) handler(change);
  }
}
