import { FairQueue } from './fair-semaphore.js';

export interface QueuedEvent {
  /** Equal for repeats of one event. */
  readonly key: string;
  readonly namespace: string;
  readonly type: 'Normal' | 'Warning';
  readonly weight: 1;
}

/** A quarter is kept for warnings. */
const SHARE_FOR_NORMAL = 0.75;

/**
 * Events that wait to be written. Namespaces take turns. If the queue is full, the namespace with the most events loses its oldest one to a
 * namespace that has fewer, so tenants with many events do not displace those of others.
 */
export class EventQueue<E extends QueuedEvent> {
  readonly #size: number;
  readonly #events = new Map<string, E>();
  readonly #queue = new FairQueue<E>(Infinity);

  constructor(size: number) {
    this.#size = size;
  }

  get(key: string): E | undefined {
    return this.#events.get(key);
  }

  hasRoomFor(event: E): boolean {
    return !this.#isFullFor(event) || this.#namespaceToCut(event) !== undefined;
  }

  /**
   * Adds an event for which the queue has room.
   * @returns the event that it displaces
   */
  add(event: E): E | undefined {
    const loser = this.#isFullFor(event) ? this.#namespaceToCut(event) : undefined;
    const displaced = loser === undefined ? undefined : this.#take((namespace) => namespace === loser);
    this.#events.set(event.key, event);
    this.#queue.add(event.namespace, event);
    return displaced;
  }

  take(): E | undefined {
    return this.#take(() => true);
  }

  #take(mayTake: (namespace: string) => boolean): E | undefined {
    const event = this.#queue.take(mayTake)?.item;
    if (event !== undefined) this.#events.delete(event.key);
    return event;
  }

  #isFullFor({ type }: E): boolean {
    return this.#events.size >= (type === 'Warning' ? this.#size : Math.floor(this.#size * SHARE_FOR_NORMAL));
  }

  #namespaceToCut({ namespace }: E): string | undefined {
    const heaviest = this.#queue.heaviestKey();
    const hasMore = heaviest !== undefined && this.#queue.weightOf(heaviest) > this.#queue.weightOf(namespace) + 1;
    return hasMore ? heaviest : undefined;
  }
}
