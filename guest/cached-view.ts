import type { IPAMClaim } from '../api/ipam-claim.js';
import { joinKey } from '../api/meta.js';
import type { NetworkConfig } from '../api/networks/network-attachment.js';
import { BY_OWNER_UID } from '../cluster/watch-specs.js';
import type { ParsedNad } from '../cluster/transforms.js';
import type { PoolDirectory } from '../addressing/directory/directory.js';
import type { Resolution } from '../addressing/directory/resolution.js';
import type { Lister } from '../kube/informers/cache.js';
import type { GuestView } from './interfaces.js';
import { shownAddresses } from './leased-addresses.js';

export interface GuestListers {
  readonly claims: Lister<IPAMClaim>;
  readonly networks: Pick<Lister<ParsedNad>, 'get'>;
  readonly directory: Pick<PoolDirectory, 'resolve'>;
}

/** One namespace as the caches show it. Which claim an interface has does not depend on VMs and VMIs, so they are not shown. */
export class CachedGuestView implements GuestView {
  readonly allowsNewClaims: boolean;
  readonly #namespace: string;
  readonly #listers: GuestListers;

  /** @param allowsNewClaims whether interfaces without a claim get one */
  constructor(namespace: string, listers: GuestListers, allowsNewClaims: boolean) {
    this.#namespace = namespace;
    this.#listers = listers;
    this.allowsNewClaims = allowsNewClaims;
  }

  vm(): undefined {
    return undefined;
  }

  vmi(): undefined {
    return undefined;
  }

  claim(name: string): IPAMClaim | undefined {
    return this.#listers.claims.get(joinKey(this.#namespace, name));
  }

  claimsOf(ownerUid: string): readonly IPAMClaim[] {
    const claims = this.#listers.claims.byIndex(BY_OWNER_UID, ownerUid);
    return claims.filter(({ metadata }) => metadata.namespace === this.#namespace);
  }

  network(key: string): NetworkConfig | undefined {
    return this.#listers.networks.get(key)?.config;
  }

  nad(key: string): ParsedNad | undefined {
    return this.#listers.networks.get(key);
  }

  /** Shown addresses are enough here, because a guest gets only those that are leased in the address space of the pool. */
  resolve(claim: IPAMClaim): Resolution {
    return this.#listers.directory.resolve(claim, shownAddresses(claim) !== undefined);
  }
}
