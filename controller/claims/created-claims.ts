import type { IPAMClaim } from '../../api/ipam-claim.js';
import { objectKey } from '../../api/meta.js';
import type { Clock } from '../../kube/clock.js';

/** A watch delivers a new claim within seconds. If it does not, the claim may be gone again. */
const EXPECTED_WITHIN_MS = 30_000;

/**
 * Claims that exist and that no watch event has shown yet. To create one again would fail, and a ResourceQuota would count it until the
 * API server's quota controller counts again, minutes later.
 */
export class CreatedClaims {
  readonly #clock: Pick<Clock, 'now'>;
  /** By `namespace/name`. `at`: when it was created, by the clock. `formerUid`: the UID of the claim that it replaces. */
  readonly #created = new Map<string, { at: number; formerUid: string | undefined }>();

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock;
  }

  /** @param former the claim of the same name that was released for it; watch events may still show that one */
  created(claim: IPAMClaim, former?: IPAMClaim): void {
    this.#created.set(objectKey(claim), { at: this.#clock.now(), formerUid: former?.metadata.uid });
  }

  /** A watch event has shown the claim, or that it is gone. */
  shown(claim: IPAMClaim): void {
    const key = objectKey(claim);
    const formerUid = this.#created.get(key)?.formerUid;
    if (formerUid === undefined || formerUid !== claim.metadata.uid) this.#created.delete(key);
  }

  isExpected(claim: IPAMClaim): boolean {
    const key = objectKey(claim);
    const created = this.#created.get(key);
    if (created === undefined) return false;
    if (this.#clock.now() - created.at < EXPECTED_WITHIN_MS) return true;
    this.#created.delete(key);
    return false;
  }
}
