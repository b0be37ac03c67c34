import { setTimeout as pause } from 'node:timers/promises';
import { writeFile } from 'node:fs/promises';
import { expect } from 'chai';
import type { Agent } from 'undici';
import type { FaultKind, PlannedFault } from './chaos/plan.js';
import { SERVICE_NAMES } from './chaos/prober.js';
import { type FaultRecord, findings, markdown } from './chaos/report.js';
import { Chaos } from './chaos/run.js';
import { onBed } from './environment.js';
import { creationReview, reviewAgent, sendReview } from './holdfast/review.js';
import { findLibfaketime } from './faults/libfaketime.js';
import { messageOf } from '../kube/errors.js';
import { reportSkipped } from '../test/report-skipped.js';

const SEED = 13;
/** Of a Lease and the interval of candidates, and a reserve for a busy machine. */
const TAKEOVER_MS = 15_000 + 2_000 + 20_000;
/** A restarted API server rejects writes to which a policy with our kinds applies, until it discovers kinds after half a minute. */
const DISCOVERY_MS = 30_000 + 20_000;
const REVIEWS_PER_SECOND = 200;

if (onBed) {
  describe('Two controllers, two ipams, three webhooks, two capacity processes and two API servers under load', function () {
    this.timeout(180_000);
    let chaos: Chaos;
    const records: FaultRecord[] = [];

    before(async function () {
      this.timeout(15 * 60_000);
      const missing = await findLibfaketime().then(() => undefined, messageOf);
      if (missing !== undefined) reportSkipped(`not tested with a stepped clock: ${missing}`);
      const options = { seed: SEED, minutes: 1, say: () => undefined };
      chaos = await Chaos.begin(options, { isBuilt: true, stepsClock: missing === undefined });
    });

    after(() => (chaos as Chaos | undefined)?.stop());

    it('allocate again after a takeover when the leader of ipam is killed in a burst', async () => {
      const { waits } = await hit('leader killed', { role: 'ipam' });
      expect(Math.max(...Object.values(waits))).to.be.lessThan(TAKEOVER_MS);
    });

    it('do no harm when a leader wakes up after its lease has expired', async () => {
      const { waits } = await hit('leader stopped past its lease', { role: 'ipam' });
      expect(Math.max(...Object.values(waits))).to.be.lessThan(TAKEOVER_MS);
    });

    it('go on when one of two API servers hangs with open watches', async () => {
      await hit('API server stopped', { length: 0 });
    });

    it('go on when one of two API servers is killed and the history of etcd is compacted', async () => {
      const { waits } = await hit('etcd compacted', { length: 0 });
      expect(Math.max(...Object.values(waits))).to.be.lessThan(DISCOVERY_MS);
    });

    it(`answer ${String(REVIEWS_PER_SECOND)} admissions a second without a failure while certificate and CA are replaced`, async () => {
      const reviews = new Reviews(chaos);
      await reviews.begin();
      try {
        await hit('certificate renewed');
        await hit('CA replaced');
      } finally {
        await reviews.end();
      }
      expect(reviews.failures).to.deep.equal([]);
      expect(reviews.rate()).to.be.greaterThan(REVIEWS_PER_SECOND / 2);
    });

    it('go on when the wall clock of all of them steps by five minutes, forward and back', async function () {
      if (chaos.fleet.clock === undefined) this.skip();
      await hit('clock stepped');
    });

    it('have lost, leaked and duplicated no address, and every VM has its own', async () => {
      const report = await chaos.end();
      if (process.env.REPORT) await writeFile(process.env.REPORT, `${markdown(report)}\n`);
      expect(findings(report).join('\n')).to.equal('');
      expect(report.counts.launchers).to.be.greaterThan(5);
      expect(report.counts.events).to.be.greaterThan(100);
      expect(records.map(({ failedAdmissions }) => failedAdmissions)).to.deep.equal(records.map(() => 0));
    });

    /** Causes a fault, and waits until everything is served. */
    async function hit(kind: FaultKind, options: Partial<PlannedFault> = {}): Promise<FaultRecord> {
      const planned = { kind, role: 'ipam', choice: 0.5, length: 0.3, pauseMs: 0, ...options } as const;
      const record = await chaos.inject(planned);
      expect(record?.recoveredAt, `${kind}: ${SERVICE_NAMES.join(', ')}`).to.be.a('number');
      records.push(record!);
      return record!;
    }
  });
}

/** Admission reviews that are sent directly to the three webhooks in turn, as API servers send them. */
class Reviews {
  readonly failures: string[] = [];
  readonly #chaos: Chaos;
  readonly #agent: Agent = reviewAgent(12);
  readonly #stopping = new AbortController();
  #running: Promise<unknown> = Promise.resolve();
  #sent = 0;
  #startedAt = 0;
  #endedAt = 0;

  constructor(chaos: Chaos) {
    this.#chaos = chaos;
  }

  async begin(): Promise<void> {
    const launcher = await this.#chaos.launcher();
    const ports = this.#chaos.fleet.of('webhook').map(({ process }) => process.ports.webhook);
    this.#startedAt = Date.now();
    this.#running = (async () => {
      const pending: Promise<void>[] = [];
      while (!this.#stopping.signal.aborted) {
        const due = ((Date.now() - this.#startedAt) * REVIEWS_PER_SECOND) / 1000;
        for (; this.#sent < due; this.#sent++) {
          const uid = `review-${String(this.#sent)}`;
          pending.push(this.#send(ports[this.#sent % ports.length]!, creationReview(launcher, uid)));
        }
        await pause(20);
      }
      await Promise.all(pending);
    })();
  }

  async end(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
    this.#endedAt = Date.now();
    await this.#agent.close();
  }

  /** Reviews a second. */
  rate(): number {
    return (this.#sent * 1000) / (this.#endedAt - this.#startedAt);
  }

  async #send(port: number, review: object): Promise<void> {
    try {
      const { allowed, patch, status } = await sendReview(port, review, this.#agent);
      if (!allowed || patch === undefined) this.failures.push(status?.message ?? 'no claim was set');
    } catch (error) {
      this.failures.push(error instanceof Error ? error.message : String(error));
    }
  }
}
