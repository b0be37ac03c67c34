/** Memory of a request besides its body. It limits the number of small requests. */
const REQUEST_BYTES = 16 * 1024;

/** The part of the budget that one request uses. */
export interface BodyShare {
  readonly bytes: number;
  /** Adds received bytes. @returns false if the budget has no room for them */
  add(bytes: number): boolean;
  /** Marks the body as complete. It keeps its share until it is released. */
  complete(): void;
  release(): void;
}

/**
 * Limits the memory of all request bodies together. If there is no room, the oldest incomplete body is dropped for younger ones, so that a client
 * that sends slowly or never ends does not block others.
 */
export class BodyBudget {
  readonly #maxBytes: number;
  #used = 0;
  /** Oldest first. */
  readonly #incomplete = new Set<Share>();

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** The number of bytes in use. */
  get used(): number {
    return this.#used;
  }

  /** @param onEvicted called if the share was released to make room for other requests */
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
