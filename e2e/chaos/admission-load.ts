import { setTimeout as pause } from 'node:timers/promises';
import type { Agent } from 'undici';
import type { Pod } from '../../api/pod.js';
import { messageOf } from '../../kube/errors.js';
import { creationReview, reviewAgent, sendReview } from '../../bed/holdfast/review.js';
import type { Fleet } from './fleet.js';
import { ADMISSION_DEADLINE_MS, LauncherCreator } from '../../bed/story/vms/launcher-creator.js';

const TICK_MS = 10;
/** On a busy machine, fewer admissions are sent instead of more that wait. */
const MAX_IN_FLIGHT = { created: 6, reviewed: 24 } as const;

/** `created`: by dry-run creates at both API servers in turn. `reviewed`: sent directly to all webhooks in turn, as API servers send them. */
type Way = keyof typeof MAX_IN_FLIGHT;

/** A constant rate of admissions of launchers: as many as possible through the API servers, the others directly. */
export class AdmissionLoad {
  readonly failures: string[] = [];
  readonly answered: Record<Way, number> = { created: 0, reviewed: 0 };
  readonly #agent: Agent = reviewAgent(MAX_IN_FLIGHT.reviewed);
  readonly #creators: readonly LauncherCreator[];
  readonly #ports: readonly number[];
  readonly #launcher: Pod;
  readonly #perSecond: number;
  readonly #stopping = new AbortController();
  readonly #sent: Record<Way, number> = { created: 0, reviewed: 0 };
  readonly #inFlight = { created: new Set<Promise<unknown>>(), reviewed: new Set<Promise<unknown>>() };
  readonly #startedAt = Date.now();
  readonly #running: Promise<void>;
  #endedAt = 0;
  #ended: Promise<void> | undefined;

  private constructor(fleet: Fleet, creators: readonly LauncherCreator[], launcher: Pod, perSecond: number) {
    this.#creators = creators;
    this.#ports = fleet.of('webhook').map(({ process }) => process.ports.webhook);
    this.#launcher = launcher;
    this.#perSecond = perSecond;
    this.#running = this.#run();
  }

  static async begin(fleet: Fleet, launcher: Pod, perSecond: number): Promise<AdmissionLoad> {
    const { bed, apiServer } = fleet;
    const creators = [await LauncherCreator.connect(bed), await LauncherCreator.connect(bed, apiServer.url)];
    return new AdmissionLoad(fleet, creators, launcher, perSecond);
  }

  /** Sends no more, and waits until all are answered. */
  end(): Promise<void> {
    return (this.#ended ??= this.#end());
  }

  /** The rates of answered admissions. */
  summary(): string {
    const seconds = (this.#endedAt - this.#startedAt) / 1_000;
    const rate = (way: Way) => (this.answered[way] / seconds).toFixed(0);
    return `${rate('created')} admissions a second through the API servers and ${rate('reviewed')} directly, for ${seconds.toFixed(0)} s; ${String(this.failures.length)} failed`;
  }

  async #end(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
    this.#endedAt = Date.now();
    await Promise.all([this.#agent.close(), ...this.#creators.map((creator) => creator.close())]);
  }

  async #run(): Promise<void> {
    let due = 0;
    let last = Date.now();
    while (!this.#stopping.signal.aborted) {
      await pause(TICK_MS);
      const now = Date.now();
      due += ((now - last) * this.#perSecond) / 1_000;
      last = now;
      while (due >= 1 && this.#sendOne()) due--;
      // what cannot be sent now is not made up for
      due = Math.min(due, 1);
    }
    await Promise.all(Object.values(this.#inFlight).flatMap((pending) => [...pending]));
  }

  /** @returns false if as many as allowed are in flight */
  #sendOne(): boolean {
    const way = (['created', 'reviewed'] as const).find((one) => this.#inFlight[one].size < MAX_IN_FLIGHT[one]);
    if (way === undefined) return false;
    const nth = this.#sent[way]++;
    const pending: Promise<unknown> = (way === 'created' ? this.#create(nth) : this.#review(nth))
      .then(
        () => this.answered[way]++,
        (error: unknown) => this.failures.push(`${way}: ${messageOf(error)}`),
      )
      .finally(() => this.#inFlight[way].delete(pending));
    this.#inFlight[way].add(pending);
    return true;
  }

  #create(nth: number): Promise<void> {
    return this.#creators[nth % this.#creators.length]!.admitCopy(this.#launcher);
  }

  async #review(nth: number): Promise<void> {
    const port = this.#ports[nth % this.#ports.length]!;
    const review = creationReview(this.#launcher, `review-${String(nth)}`);
    const signal = AbortSignal.timeout(ADMISSION_DEADLINE_MS);
    const { allowed, patch, status } = await sendReview(port, review, this.#agent, signal);
    if (!allowed || patch === undefined) throw new Error(status?.message ?? 'no claim was set');
  }
}
