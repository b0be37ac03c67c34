/**
 * Keys of one priority that wait for a worker. Their groups take turns, so that the keys of one tenant delay those of another one by one key
 * at most.
 */
export class WorkQueueLane {
  readonly #mayHaveWorker: (group: string) => boolean;
  /** The group of each key. */
  readonly #groupOf = new Map<string, string>();
  /** The keys of each group that has some. */
  readonly #groups = new Map<string, Fifo>();
  /** The groups that wait and may have another worker. The one whose turn is next comes first. */
  readonly #turns = new Fifo();

  /** @param mayHaveWorker call {@link update} when its answer may have changed */
  constructor(mayHaveWorker: (group: string) => boolean) {
    this.#mayHaveWorker = mayHaveWorker;
  }

  /** True if {@link take} returns a key. */
  get isReady(): boolean {
    return this.#turns.size > 0;
  }

  has(key: string): boolean {
    return this.#groupOf.has(key);
  }

  /** The key must not be there. */
  add(key: string, group: string): void {
    this.#groupOf.set(key, group);
    const keys = this.#groups.get(group) ?? new Fifo();
    keys.add(key);
    if (keys.size === 1) this.#groups.set(group, keys);
    this.update(group);
  }

  /** @returns whether the key was there */
  delete(key: string): boolean {
    const group = this.#groupOf.get(key);
    if (group === undefined) return false;
    this.#groups.get(group)?.delete(key);
    this.#forget(key, group);
    return true;
  }

  /** Removes the next key of the group whose turn is next. That group then goes behind all others. */
  take(): { group: string; key: string } | undefined {
    const group = this.#turns.shift();
    const key = group === undefined ? undefined : this.#groups.get(group)?.shift();
    if (group === undefined || key === undefined) return undefined;
    this.#forget(key, group);
    this.update(group);
    return { group, key };
  }

  /** Lets a group take turns while it has keys and may have another worker. A group that does so already keeps its turn. */
  update(group: string): void {
    if (this.#groups.has(group) && this.#mayHaveWorker(group)) this.#turns.add(group);
    else this.#turns.delete(group);
  }

  #forget(key: string, group: string): void {
    this.#groupOf.delete(key);
    if (this.#groups.get(group)?.size !== 0) return;
    this.#groups.delete(group);
    this.#turns.delete(group);
  }
}

/** Different texts in the order in which they were added. An iterator remembers the first one: a new one would step over all that are gone. */
class Fifo {
  readonly #texts = new Set<string>();
  #next = this.#texts.values();

  get size(): number {
    return this.#texts.size;
  }

  add(text: string): void {
    this.#texts.add(text);
  }

  delete(text: string): void {
    this.#texts.delete(text);
  }

  shift(): string | undefined {
    const next = this.#next.next();
    // an iterator that has reached the end stays there
    if (next.done === true) this.#next = this.#texts.values();
    else this.#texts.delete(next.value);
    return next.value;
  }
}
