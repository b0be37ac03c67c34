import type { Family } from '../../addressing/address/address.js';

/** When claims last found no free address outside of blocks. They then get an address of a block, and ipam reclaims unused blocks. */
export class ClaimShortages {
  readonly #shortageAt = new Map<string, Partial<Record<Family, number>>>();
  readonly #handlers: ((pool: string) => void)[] = [];

  onShortage(handler: (pool: string) => void): void {
    this.#handlers.push(handler);
  }

  /** @param at clock time in ms */
  noteShortage(pool: string, family: Family, at: number): void {
    this.#shortageAt.set(pool, { ...this.#shortageAt.get(pool), [family]: at });
    for (const handler of this.#handlers) handler(pool);
  }

  of(pool: string): Readonly<Partial<Record<Family, number>>> {
    return this.#shortageAt.get(pool) ?? {};
  }

  forget(pool: string): void {
    this.#shortageAt.delete(pool);
  }
}
