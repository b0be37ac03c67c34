import { type KubeObject, splitKey } from '../../../api/meta.js';
import { findUnlessGone } from '../../../kube/absence.js';
import type { Client } from '../../../kube/client.js';
import type { Clock } from '../../../kube/clock.js';
import type { Resource } from '../../../kube/resource.js';

/** What a live read has shown of an object. */
export interface CachedRead<T> {
  /** Undefined where there was none. */
  readonly object: T | undefined;
  /** When the read was sent, in the clock's ms: what it shows is at least as young. */
  readonly at: number;
}

/** An ADD that cannot ask in this time answers from what was seen, while there is time for that. */
const READ_MS = 3_000;

/** What was read live of single objects, and when. Nothing is watched: an agent needs few of a cluster's objects, each for a moment. */
export class ReadCache {
  readonly #client: Pick<Client, 'get'>;
  readonly #clock: Clock;
  readonly #seen = new Map<string, CachedRead<KubeObject>>();

  constructor(client: Pick<Client, 'get'>, clock: Clock) {
    this.#client = client;
    this.#clock = clock;
  }

  /** @param key `namespace/name`, or the name; @param since the clock's ms: what was seen before does not count */
  get<T extends KubeObject>(resource: Resource<T>, key: string, since: number): CachedRead<T> | undefined {
    const found = this.#seen.get(cacheKey(resource, key));
    // the resource is part of the key, and it alone decides T
    return found !== undefined && found.at >= since ? (found as CachedRead<T>) : undefined;
  }

  /** All objects of a kind that were seen, and were there. */
  list<T extends KubeObject>(resource: Resource<T>, since: number): readonly T[] {
    const prefix = cacheKey(resource, '');
    const found: T[] = [];
    for (const [id, { object, at }] of this.#seen) {
      if (object !== undefined && at >= since && id.startsWith(prefix)) found.push(object as T);
    }
    return found;
  }

  /** @throws {StatusError | TransportError} where nobody says whether there is such an object */
  async read<T extends KubeObject>(resource: Resource<T>, key: string, signal: AbortSignal): Promise<CachedRead<T>> {
    const at = this.#clock.now();
    const object = await findUnlessGone(this.#client, resource, splitKey(key), { signal, deadlineMs: READ_MS });
    const sighting = { object, at };
    const id = cacheKey(resource, key);
    // a read that was overtaken shows what was before
    if ((this.#seen.get(id)?.at ?? at) <= at) this.#seen.set(id, sighting);
    return sighting;
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
