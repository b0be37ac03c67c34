import { isBeingDeleted } from '../../../../api/meta.js';
import { IPS_ALLOCATED } from '../../../../api/names.js';
import { Violation, leasesHeldBy } from './invariants.js';
import type { IpamWorld } from './world.js';
import { bareAddress } from '../../../../test/bare-address.js';

interface ProtectedClaim {
  readonly name: string;
  readonly uid: string;
  readonly addresses: readonly string[];
}

/** Checks that the addresses that claims hold and show at its creation are never leased to others, even if users delete leases. */
export class ShownAddressCheck {
  readonly #world: IpamWorld;
  readonly #claims: ProtectedClaim[];
  /** The position in the world's log of leases. */
  #position: number;

  constructor(world: IpamWorld) {
    this.#world = world;
    this.#position = world.log('addressleases').length;
    this.#claims = world.list('ipamclaims').flatMap((claim) => {
      const { name, uid = '' } = claim.metadata;
      const isAllocated = claim.status?.conditions?.some(
        ({ type, status }) => type === IPS_ALLOCATED && status === 'True',
      );
      if (!isAllocated || isBeingDeleted(claim)) return [];
      return [{ name, uid, addresses: (claim.status?.ips ?? []).map(bareAddress) }];
    });
  }

  /** From now on the claim may lose its addresses. */
  allowRelease(name: string): void {
    const index = this.#claims.findIndex((claim) => claim.name === name);
    if (index >= 0) this.#claims.splice(index, 1);
  }

  /** Checks the writes since the last call. */
  check(): void {
    const events = this.#world.log('addressleases');
    for (const { type, object } of events.slice(this.#position)) {
      const { address, releasedAt, owner } = object.spec;
      if (type === 'DELETED' || releasedAt !== undefined) continue;
      const claim = this.#claims.find(({ addresses }) => addresses.includes(address));
      if (claim !== undefined && claim.uid !== owner?.uid) {
        throw new Violation(`${address} is leased to ${owner?.uid ?? 'no owner'}, and ${claim.name} shows it`);
      }
    }
    this.#position = events.length;
  }

  /** Call it when the model has settled. */
  checkAllRestored(): void {
    for (const { name, uid, addresses } of this.#claims) {
      const held = leasesHeldBy(this.#world, uid).map(({ spec }) => spec.address);
      const lost = addresses.filter((address) => !held.includes(address));
      if (lost.length > 0) throw new Violation(`${name} has not got ${lost.join()} back`);
    }
  }
}
