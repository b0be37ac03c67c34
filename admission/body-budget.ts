/** What a request costs besides its body. It bounds the number of small requests. */
const REQUEST_BYTES = 16 * 1024;

/** What one request uses of the budget. */
export interface BodyShare {
  readonly bytes: number;
  /** Counts bytes that have arrived. @returns false if there is no room for them */
  add(bytes: number): boolean;
  /** The body is complete: it keeps its room until it is released. */
  complete(): void;
  release(): void;
}

/**
 * Bounds the memory of all request bodies together. If there is no room, the oldest incomplete body makes room for younger ones, so a client
 * that sends slowly, or never ends, does not keep others out.
 */
export class BodyBudget {
  readonly #maxBytes: number;
  #used = 0;
  /** Oldest first. */
  readonly #incomplete = new Set<Share>();

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** The bytes that are in use. */
  get used(): number {
    return this.#used;
  }

  /** @param onEvicted called if the share was released because others need its room */
  open(onEvicted: () => void): BodyShare {
    const share: Share = {
      bytes: 0,
      evict: () => {
        share.release();
        onEvicted();
      },
      add: (bytes) => this.#add(share, bytes),
      complete: () => void this.#incomplete.delete(share),
      release: () => {
        this.#incomplete.delete(share);
        this.#used -= share.bytes;
        share.bytes = 0;
      },
    };
    this.#incomplete.add(share);
    return share;
  }

  #add(share: Share, bytes: number): boolean {
    const added = share.bytes === 0 ? bytes + REQUEST_BYTES : bytes;
    for (const older of this.#incomplete) {
      if (older === share || this.#used + added <= this.#maxBytes) break;
      older.evict();
    }
    if (this.#used + added > this.#maxBytes) return false;
    share.bytes += added;
    this.#used += added;
    return true;
  }
}

interface Share extends BodyShare {
  bytes: number;
  evict(): void;
}
