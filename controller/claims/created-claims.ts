import { type IPAMClaim, claimOwnerOf, claimVmNetworkOf } from '../../api/ipam-claim.js';
import { objectKey } from '../../api/meta.js';
import type { Clock } from '../../kube/clock.js';
import { setMostRecent } from '../../kube/informers/cache.js';

/** A watch delivers a new claim within seconds. If it does not, the claim may be gone again. */
const EXPECTED_WITHIN_MS = 30_000;
/** Requests without an answer that are remembered. Beyond this number, the least recent ones are repeated, and their events are missing. */
const MAX_UNANSWERED = 4096;

interface CreatedClaim {
  claim: IPAMClaim;
  /** By the clock. */
  at: number;
  /** The UID of the claim that it replaces. */
  formerUid: string | undefined;
}

/**
 * Claims that exist and that no watch event has shown yet. To create one again would fail, and a ResourceQuota would count it until the
 * API server's quota controller counts again, minutes later. Under another name, its interface would get a second claim.
 */
export class CreatedClaims {
  readonly #clock: Pick<Clock, 'now'>;
  /** By `namespace/name`. */
  readonly #byName = new Map<string, CreatedClaim>();
  /** The same claims by interface. */
  readonly #byInterface = new Map<string, CreatedClaim>();
  /** Claims that requests without an answer may have created, by interface. */
  readonly #unanswered = new Map<string, CreatedClaim>();

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock;
  }

  /** @param former the claim of the same name that was released for it; watch events may still show that one */
  created(claim: IPAMClaim, former?: IPAMClaim): void {
    this.#unanswered.delete(interfaceKey(claim));
    this.found(claim, former?.metadata.uid);
  }

  /** The API server has the claim, but the request of this process that created it, if any, got no answer. */
  found(claim: IPAMClaim, formerUid?: string): void {
    this.#forget(this.#byName.get(objectKey(claim)));
    const created = { claim, at: this.#clock.now(), formerUid };
    this.#byName.set(objectKey(claim), created);
    this.#byInterface.set(interfaceKey(claim), created);
  }

  /** The request to create the claim got no answer: only a read can tell whether it exists. */
  unanswered(claim: IPAMClaim, former?: IPAMClaim): void {
    const attempt = { claim, at: this.#clock.now(), formerUid: former?.metadata.uid };
    setMostRecent(this.#unanswered, interfaceKey(claim), attempt, MAX_UNANSWERED);
  }

  /** Returns the claim that a request without an answer may have created for this interface. */
  unansweredFor(claim: IPAMClaim): IPAMClaim | undefined {
    return this.#unanswered.get(interfaceKey(claim))?.claim;
  }

  /** Returns true if such a request created this claim. */
  isAnswer(found: IPAMClaim): boolean {
    const attempt = this.#unanswered.get(interfaceKey(found));
    return attempt !== undefined && attempt.formerUid !== found.metadata.uid;
  }

  /** Returns those of the observed claims that such requests created, once for each. */
  takeAnswers(observed: readonly IPAMClaim[]): IPAMClaim[] {
    return observed.filter((claim) => this.isAnswer(claim) && this.#unanswered.delete(interfaceKey(claim)));
  }

  /** A watch event has shown the claim, or that it is gone. */
  shown(claim: IPAMClaim): void {
    const created = this.#byName.get(objectKey(claim));
    if (created?.formerUid === undefined || created.formerUid !== claim.metadata.uid) this.#forget(created);
  }

  /** Returns true if a claim of this name or for this interface exists already. */
  isExpected(claim: IPAMClaim): boolean {
    const found = [this.#byName.get(objectKey(claim)), this.#byInterface.get(interfaceKey(claim))];
    return found.some((created) => created !== undefined && this.#isRecent(created));
  }

  #isRecent(created: CreatedClaim): boolean {
    if (this.#clock.now() - created.at < EXPECTED_WITHIN_MS) return true;
    this.#forget(created);
    return false;
  }

  #forget(created: CreatedClaim | undefined): void {
    if (created === undefined) return;
    this.#byName.delete(objectKey(created.claim));
    const key = interfaceKey(created.claim);
    if (this.#byInterface.get(key) === created) this.#byInterface.delete(key);
  }
}

/** A plan names the claim of an interface differently when the cache shows that its first name is free again. */
function interfaceKey(claim: IPAMClaim): string {
  return JSON.stringify([claimOwnerOf(claim)?.uid, claimVmNetworkOf(claim), claim.spec.network]);
}
