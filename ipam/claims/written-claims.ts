import type { IPAMClaim } from '../../api/ipam-claim.js';
import { isNewer } from '../../kube/resource-version.js';

/** Claims as our own writes left them, for as long as the cache has not caught up: else each write would be followed by one in vain. */
export class WrittenClaims {
  readonly #claims = new Map<string, IPAMClaim>();

  wrote(key: string, claim: IPAMClaim): void {
    this.#claims.set(key, claim);
  }

  /** The newer of what the cache has and what was written. */
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
