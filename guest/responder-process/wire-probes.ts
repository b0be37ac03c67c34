import type { Clock } from '../../kube/clock.js';
import { MAX_EXPECTED, MAX_PROBES, type WireQuestion } from '../responder-tables/protocol.js';

/** How long the helper asks. Hosts of a segment answer within milliseconds; ipam waits for PROBE_LIMITS.timeoutMs in all. */
const ASK_MS = 900;
/** An answer that is later than this does not come any more. */
const LOST_MS = 3 * ASK_MS;

/** The probes of one connection to the packet helper, which is not trusted: an answer that nobody waits for is ignored. */
export class WireProbes {
  readonly #clock: Pick<Clock, 'setTimer'>;
  readonly #waiting = new Map<number, (macs: readonly string[] | undefined) => void>();
  #lastId = 0;

  constructor(clock: Pick<Clock, 'setTimer'>) {
    this.#clock = clock;
  }

  /** @returns what {@link HelperSession.probe} returns */
  ask(
    address: string,
    expect: readonly string[],
    send: (question: WireQuestion) => void,
  ): Promise<readonly string[] | undefined> {
    if (this.#waiting.size >= MAX_PROBES) return Promise.resolve(undefined);
    const id = ++this.#lastId;
    return new Promise((resolve) => {
      const cancel = this.#clock.setTimer(LOST_MS, () => this.answer(id, undefined));
      this.#waiting.set(id, (macs) => {
        cancel();
        resolve(macs);
      });
      send({ id, address, expect: expect.slice(0, MAX_EXPECTED), forMs: ASK_MS });
    });
  }

  answer(id: number, macs: readonly string[] | undefined): void {
    this.#waiting.get(id)?.(macs);
    this.#waiting.delete(id);
  }

  /** The connection is gone. */
  end(): void {
    for (const id of [...this.#waiting.keys()]) this.answer(id, undefined);
  }
}
