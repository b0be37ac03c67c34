import { type KubeObject, splitKey } from '../../../api/meta.js';
import { findUnlessGone } from '../../../kube/absence.js';
import type { Client } from '../../../kube/client.js';
import type { Clock } from '../../../kube/clock.js';
import type { Resource } from '../../../kube/resource.js';

/** The result of a live read. */
export interface CachedRead<T> {
  /** Undefined if the object did not exist. */
  readonly object: T | undefined;
  /** When the read was sent, in the clock's ms. The result is at least as new. */
  readonly at: number;
}

/** After this time an ADD uses a cached read, while there is still time for the answer. */
const READ_MS = 3_000;

/** Recent live reads of single objects. Nothing is watched, because an agent needs few objects of the cluster, each for a short time. */
export class ReadCache {
  readonly #client: Pick<Client, 'get'>;
  readonly #clock: Clock;
  readonly #seen = new Map<string, CachedRead<KubeObject>>();

  constructor(client: Pick<Client, 'get'>, clock: Clock) {
    this.#client = client;
    this.#clock = clock;
  }

  /** Returns the last read of an object. @param key `namespace/name`, or the name; @param since ignores reads before, in the clock's ms */
  get<T extends KubeObject>(resource: Resource<T>, key: string, since: number): CachedRead<T> | undefined {
    const found = this.#seen.get(cacheKey(resource, key));
    // the resource, which determines T, is part of the key
    return found !== undefined && found.at >= since ? (found as CachedRead<T>) : undefined;
  }

  /** Returns all objects of a kind that were read and existed. */
  list<T extends KubeObject>(resource: Resource<T>, since: number): readonly T[] {
    const prefix = cacheKey(resource, '');
    const found: T[] = [];
    for (const [id, { object, at }] of this.#seen) {
      if (object !== undefined && at >= since && id.startsWith(prefix)) found.push(object as T);
    }
    return found;
  }

  /** Reads an object live. @throws {StatusError | TransportError} if the read failed; a missing object is no error */
  async read<T extends KubeObject>(resource: Resource<T>, key: string, signal: AbortSignal): Promise<CachedRead<T>> {
    const at = this.#clock.now();
    const object = await findUnlessGone(this.#client, resource, splitKey(key), { signal, deadlineMs: READ_MS });
    const read = { object, at };
    const id = cacheKey(resource, key);
    // a slower read that was sent earlier must not replace a newer result
    if ((this.#seen.get(id)?.at ?? at) <= at) this.#seen.set(id, read);
    return read;
  }

  evictBefore(time: number): void {
    for (const [id, { at }] of this.#seen) if (at < time) this.#seen.delete(id);
  }

  get size(): number {
    return this.#seen.size;
  }
}

function cacheKey({ group, plural }: Resource, key: string): string {
  return `${group}/${plural} ${key}`;
}
