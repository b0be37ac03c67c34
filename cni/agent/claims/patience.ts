import { type Backoff, backoff } from '../../../kube/backoff.js';
import type { Clock, Random } from '../../../kube/clock.js';
import type { Call } from '../attachment.js';
import { CniCode, CniError } from '../cni-error.js';

/** Most that is waited for comes within a few of these. */
const FIRST_MS = 50;
const LONGEST_MS = 1_000;

/** Waits between looks at something that is on its way, until the call's time is up. */
export class Patience {
  readonly #clock: Clock;
  readonly #call: Call;
  readonly #backoff: Backoff;

  constructor(clock: Clock, random: Random, call: Call) {
    this.#clock = clock;
    this.#call = call;
    this.#backoff = backoff({ baseMs: FIRST_MS, maxMs: LONGEST_MS, random });
  }

  /** @throws {CniError} 11 with what was waited for, once time is up */
  async wait(reason: string): Promise<void> {
    const { signal, rest } = this.#call;
    const nap = () => this.#clock.sleep(this.#backoff.next(), signal);
    await (rest === undefined ? nap() : rest(nap));
    this.check(reason);
  }

  /** @throws {CniError} 11, as {@link wait} */
  check(reason: string): void {
    if (this.#call.signal.aborted) throw new CniError(CniCode.TryAgain, `${reason}; time is up: try again`);
  }
}
