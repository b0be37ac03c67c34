import { type KubeObject, splitKey } from '../../api/meta.js';
import type { ObjectRef, Resource } from '../../kube/resource.js';
import { ObjectTracker, type TrackedEvent, type TrackerOptions } from '../../kube/testing/object-tracker.js';
import { ALREADY_EXISTS, refusal } from '../../kube/testing/refusals.js';

type Resources<Objects> = { readonly [K in keyof Objects]: Resource<Objects[K] & KubeObject> };

/** The objects of a model cluster, by short names of their kinds. Tests may write anything, unlike a client. */
export abstract class ObjectWorld<Objects extends Record<keyof Objects, KubeObject>> {
  readonly tracker: ObjectTracker;
  readonly #kinds: Resources<Objects>;
  readonly #options: Required<TrackerOptions>;

  constructor(kinds: Resources<Objects>, options: Required<TrackerOptions>) {
    this.#kinds = kinds;
    this.#options = options;
    this.tracker = new ObjectTracker(options);
  }

  /** The creationTimestamp of a new object. */
  protected abstract timeOfNext(): string;

  /** Grows with every write. */
  get version(): number {
    return this.tracker.version;
  }

  /** All writes of a kind, in order. */
  log<K extends keyof Objects>(kind: K): readonly TrackedEvent<Objects[K]>[] {
    return this.tracker.events(this.#kinds[kind]);
  }

  get<K extends keyof Objects>(kind: K, key: string): Objects[K] | undefined {
    return this.tracker.objects(this.#kinds[kind]).get(key);
  }

  list<K extends keyof Objects>(kind: K): Objects[K][] {
    return [...this.tracker.objects(this.#kinds[kind]).values()];
  }

  create<K extends keyof Objects>(kind: K, object: Objects[K]): Objects[K] {
    const resource = this.#kinds[kind];
    const { metadata } = object;
    if (this.tracker.find(resource, metadata) !== undefined)
      throw refusal(resource, metadata.name, ALREADY_EXISTS, 'already exists');
    const uid = this.#options.uidOf(resource, object, this.version + 1);
    const identity = { uid, creationTimestamp: this.timeOfNext() };
    this.tracker.put(resource, structuredClone({ ...object, metadata: { ...metadata, ...identity } }));
    return this.tracker.get(resource, metadata);
  }

  /** Changes a copy. A change without effect is no write. */
  update<K extends keyof Objects>(kind: K, key: string, change: (copy: Objects[K]) => void): Objects[K] {
    return this.tracker.change(this.#kinds[kind], refOf(key), change);
  }

  remove(kind: keyof Objects, key: string): void {
    this.tracker.remove(this.#kinds[kind], refOf(key));
  }
}

/** @param key `namespace/name` */
export function refOf(key: string): ObjectRef {
  const { namespace, name } = splitKey(key);
  return namespace === '' ? { name } : { namespace, name };
}
