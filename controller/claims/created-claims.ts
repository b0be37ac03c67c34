import type { Clock } from '../../kube/clock.js';

/** A watch delivers a new claim within seconds. If it does not, the claim may be gone again. */
const EXPECTED_WITHIN_MS = 30_000;

/**
 * Claims that exist and that no watch event has shown yet. To create one again would fail, and a ResourceQuota would count it until the
 * API server's quota controller counts again, minutes later.
 */
export class CreatedClaims {
  readonly #clock: Pick<Clock, 'now'>;
  /** By `namespace/name`: when it was created, by the clock. */
  readonly #createdAt = new Map<string, number>();

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock;
  }

  created(claim: string): void {
    this.#createdAt.set(claim, this.#clock.now());
  }

  /** A watch event has shown the claim, or that it is gone. */
  shown(claim: string): void {
    this.#createdAt.delete(claim);
  }

  isExpected(claim: string): boolean {
    const createdAt = this.#createdAt.get(claim);
    if (createdAt === undefined) return false;
    if (this.#clock.now() - createdAt < EXPECTED_WITHIN_MS) return true;
    this.#createdAt.delete(claim);
    return false;
  }
}
