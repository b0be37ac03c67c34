import type { IPAMClaim } from '../../api/ipam-claim.js';
import { isNewer } from '../../kube/resource-version.js';

/** Our own last writes of claims, until the cache has caught up. Without them, each write would cause a needless second one. */
export class WrittenClaims {
  readonly #claims = new Map<string, IPAMClaim>();

  wrote(key: string, claim: IPAMClaim): void {
    this.#claims.set(key, claim);
  }

  /** Returns the newer of the cached claim and our own last write. */
  newest(key: string, cached: IPAMClaim | undefined): IPAMClaim | undefined {
    const own = this.#claims.get(key);
    if (own === undefined || isBehind(cached, own)) return own ?? cached;
    this.#claims.delete(key);
    return cached;
  }
}

function isBehind(cached: IPAMClaim | undefined, own: IPAMClaim): boolean {
  if (cached === undefined || cached.metadata.uid !== own.metadata.uid) return false;
  return isNewer(own.metadata.resourceVersion ?? '', cached.metadata.resourceVersion ?? '');
}
