import type { Address } from '../address/address.js';
import { AddressSpace } from './address-space.js';

/** Address spaces by name. Tenants may name ever new ones, so a space is forgotten when its pools are removed and no address is occupied. */
export class AddressSpaces {
  readonly #spaces = new Map<string, AddressSpace>();
  readonly #remembered: number | undefined;

  /** @param remembered as of {@link AddressSpace} */
  constructor(remembered?: number) {
    this.#remembered = remembered;
  }

  /** Returns the space, which is made if it is not known. */
  of(name: string): AddressSpace {
    const space = this.#spaces.get(name) ?? new AddressSpace(this.#remembered);
    this.#spaces.set(name, space);
    return space;
  }

  isOccupied(name: string, address: Address): boolean {
    return this.#spaces.get(name)?.isOccupied(address) === true;
  }

  vacate(name: string, address: Address): void {
    this.#spaces.get(name)?.vacate(address);
    this.dropUnused(name);
  }

  removePool(name: string, pool: string): void {
    this.#spaces.get(name)?.removePool(pool);
    this.dropUnused(name);
  }

  /** Call it after a handler of changes has ended. */
  dropUnused(name: string): void {
    if (this.#spaces.get(name)?.isUnused === true) this.#spaces.delete(name);
  }
}
