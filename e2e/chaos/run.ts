import { cpus } from 'node:os';
import type { Pod } from '../../api/pod.js';
import { seededRandom } from '../../test/seeded-random.js';
import { until } from '../../bed/processes/wait.js';
import { Story } from '../../bed/story/story.js';
import { Churn } from './churn.js';
import { inject, MAY_FAIL_ADMISSIONS } from './faults.js';
import { Fleet, type FleetOptions } from './fleet.js';
import { Judge } from './judge.js';
import { planFaults, type PlannedFault } from './plan.js';
import { Prober, SERVICE_NAMES } from './prober.js';
import type { FaultRecord, Report } from './report.js';
import { type Sample, sampleUsage } from './usage.js';

const BASELINE_MS = 15_000;
const SAMPLE_EVERY_MS = 60_000;
const FAULTS_PER_CHECK = 12;
/** A waiting candidate takes a Lease over after 17 s at most; clients give up a silent connection after half a minute. */
const RECOVERY_MS = 90_000;

export interface ChaosOptions {
  readonly seed: number;
  readonly minutes: number;
  readonly say: (line: string) => void;
  /** Ends the run early. */
  readonly signal?: AbortSignal;
  /** Called with the figures so far. */
  readonly checkpoint?: (report: Report) => Promise<void>;
}

/** Starts a fleet, and lets random faults happen while users work. */
export async function runChaos(options: ChaosOptions): Promise<Report> {
  const chaos = await Chaos.begin(options, { progress: options.say, keepLogs: true });
  try {
    await chaos.injectRandomFaults();
    return await chaos.end();
  } finally {
    await chaos.stop();
  }
}

/** A fleet with users, observers and probes. */
export class Chaos {
  readonly fleet: Fleet;
  readonly #options: ChaosOptions;
  readonly #churn: Churn;
  readonly #prober: Prober;
  readonly #story: Story;
  readonly #records: FaultRecord[] = [];
  readonly #samples: Sample[] = [];
  readonly #violations: string[] = [];
  readonly #unfinished: string[] = [];
  readonly #startedAt = Date.now();
  #judge: Judge | undefined;
  #sampling: NodeJS.Timeout | undefined;

  private constructor(fleet: Fleet, story: Story, options: ChaosOptions) {
    this.fleet = fleet;
    this.#options = options;
    this.#story = story;
    this.#churn = new Churn(story, seededRandom(options.seed ^ 0x5eed));
    this.#prober = new Prober(fleet, story);
  }

  /** Starts all of it, and waits until everything is served. */
  static async begin(options: ChaosOptions, fleetOptions: FleetOptions): Promise<Chaos> {
    const fleet = await Fleet.start(fleetOptions);
    try {
      const { bed } = fleet;
      const story = await Story.begin({ ...bed, bed: undefined, stop: () => bed.stop() });
      const chaos = new Chaos(fleet, story, options);
      await chaos.#start();
      return chaos;
    } catch (error) {
      await fleet.stop();
      throw error;
    }
  }

  /** A launcher that runs until the end, for further admissions. */
  async launcher(): Promise<Pod> {
    return until('the launcher of VM probe', async () => (await this.#story.launchers('probe'))[0]);
  }

  async injectRandomFaults(): Promise<void> {
    await this.#baseline();
    await this.#injectFaults();
  }

  /** Checks everything while nothing changes, and ends users and observers. */
  async end(): Promise<Report> {
    await this.#check();
    await Promise.all([this.#churn.stop(), this.#prober.stop()]);
    await this.#judge!.stop();
    return this.#report();
  }

  async stop(): Promise<void> {
    clearInterval(this.#sampling);
    await this.fleet.stop();
  }

  async #start(): Promise<void> {
    const network = await this.#churn.start();
    this.#judge = new Judge(this.fleet, this.#story, network);
    this.#judge.start();
    this.#churn.begin();
    await this.#prober.start(network);
    await this.#served(Date.now());
    await this.#sample();
    this.#sampling = setInterval(() => void this.#sample(), SAMPLE_EVERY_MS);
  }

  async #injectFaults(): Promise<void> {
    const plans = planFaults(seededRandom(this.#options.seed));
    const end = Date.now() + this.#options.minutes * 60_000;
    for (let count = 1; Date.now() < end && !this.#options.signal?.aborted; count++) {
      const planned = plans.next().value;
      await this.#sleep(planned.pauseMs);
      if (this.#options.signal?.aborted) break;
      await this.inject(planned);
      if (count % FAULTS_PER_CHECK === 0) await this.#check();
    }
  }

  /** Causes a fault, and waits until everything is served again. */
  async inject(planned: PlannedFault): Promise<FaultRecord | undefined> {
    const startedAt = Date.now();
    const injected = await inject(this.fleet, planned);
    if (injected === undefined) return undefined;
    const endedAt = Date.now();
    const recoveredAt = await this.#served(endedAt);
    const record = this.#record({ ...injected, startedAt, endedAt, recoveredAt });
    if (recoveredAt === undefined)
      this.#unfinished.push(`not everything was served after ${record.kind} of ${record.target}`);
    if (record.failedAdmissions > 0 && !MAY_FAIL_ADMISSIONS.has(injected.kind)) {
      const { message } = this.#prober.failedAdmissions.at(-1)!;
      this.#violations.push(
        `${String(record.failedAdmissions)} admissions failed: ${injected.kind} of ${injected.target}: ${message}`,
      );
    }
    this.#checkRunning();
    return record;
  }

  async #baseline(): Promise<void> {
    const startedAt = Date.now();
    await this.#sleep(BASELINE_MS);
    this.#record({ kind: 'none', target: '', startedAt, endedAt: Date.now(), recoveredAt: Date.now() });
  }

  #record(what: Pick<FaultRecord, 'kind' | 'target' | 'startedAt' | 'endedAt' | 'recoveredAt'>): FaultRecord {
    const from = what.startedAt;
    const to = what.recoveredAt ?? Date.now();
    const waits = SERVICE_NAMES.map((service) => [service, this.#prober.longestWait(service, from, to)] as const);
    const failedAdmissions = this.#prober.failedAdmissions.filter(({ at }) => at >= from && at <= to).length;
    const record = { ...what, waits: Object.fromEntries(waits) as FaultRecord['waits'], failedAdmissions };
    this.#records.push(record);
    const text = waits.map(([, ms]) => (ms / 1000).toFixed(1)).join(' ');
    const failed = failedAdmissions === 0 ? '' : `; ${String(failedAdmissions)} admissions failed`;
    this.#options.say(`${what.kind} ${what.target}: waits of ${text} s${failed}`);
    return record;
  }

  /** @returns when everything was served; undefined if it was not in time */
  async #served(since: number): Promise<number | undefined> {
    try {
      await until('everything to be served', () => this.#prober.isServed(since), {
        timeoutMs: RECOVERY_MS,
        everyMs: 200,
      });
      return Date.now();
    } catch {
      return undefined;
    }
  }

  async #check(): Promise<void> {
    try {
      await this.#churn.pause();
      await this.#judge!.checkSettled(this.#churn);
    } catch (error) {
      this.#unfinished.push(error instanceof Error ? error.message : String(error));
    }
    this.#churn.resume();
    const report = this.#report();
    const found = report.violations.length + report.leaks.length + report.unfinished.length;
    this.#options.say(
      `checked: ${String(found)} findings${found === 0 ? '' : `: ${[...report.violations, ...report.leaks, ...report.unfinished].join('; ').slice(0, 600)}`}`,
    );
    await this.#options.checkpoint?.(report);
  }

  async #sample(): Promise<void> {
    this.#checkRunning();
    const living = this.fleet.members.filter(({ isDown, process }) => !isDown && process.running);
    const samples = await Promise.all(living.map(sampleUsage));
    this.#samples.push(...samples.filter((sample) => sample !== undefined));
  }

  #checkRunning(): void {
    for (const { name, isDown, process } of this.fleet.members) {
      if (!isDown && !process.running) this.#violations.push(`${name} ended by itself`);
    }
  }

  async #sleep(ms: number): Promise<void> {
    const end = Date.now() + ms;
    await until('the pause to end', () => Date.now() >= end || this.#options.signal?.aborted, {
      timeoutMs: ms + 1_000,
    });
  }

  #report(): Report {
    const { failures, actions } = this.#churn;
    return {
      seed: this.#options.seed,
      minutes: (Date.now() - this.#startedAt) / 60_000,
      machine: `${String(cpus().length)} × ${cpus()[0]?.model ?? 'CPU'}`,
      faults: this.#records,
      actions,
      counts: this.#judge!.counts,
      admissions: this.#prober.admissions,
      settled: this.#judge!.settled,
      violations: [...this.#violations, ...this.#judge!.violations],
      leaks: this.#judge!.leaks,
      unfinished: [...this.#unfinished, ...failures],
      samples: this.#samples,
    };
  }
}
