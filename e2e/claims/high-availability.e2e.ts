import { writeFile } from 'node:fs/promises';
import { expect } from 'chai';
import { AdmissionLoad } from '../chaos/admission-load.js';
import type { FaultKind, PlannedFault } from '../chaos/plan.js';
import { SERVICE_NAMES } from '../chaos/prober.js';
import { type FaultRecord, findings, markdown } from '../chaos/report.js';
import { Chaos } from '../chaos/run.js';
import { onBed } from '../../bed/environment.js';
import { findLibfaketime } from '../../bed/faults/libfaketime.js';
import { messageOf } from '../../kube/errors.js';
import { reportSkipped } from '../../test/report-skipped.js';

const SEED = 13;
/** Of a Lease and the interval of candidates, and a reserve for a busy machine. */
const TAKEOVER_MS = 15_000 + 2_000 + 20_000;
/** A restarted API server rejects writes to which a policy with our kinds applies, until it discovers kinds after half a minute. */
const DISCOVERY_MS = 30_000 + 20_000;
const ADMISSIONS_PER_SECOND = 200;

if (onBed) {
  describe('Two controllers, two ipams, three webhooks, two capacity processes and two API servers under load', () => {
    let chaos: Chaos;
    let load: AdmissionLoad | undefined;
    const records: FaultRecord[] = [];

    before(async function () {
      this.timeout(15 * 60_000);
      const missing = await findLibfaketime().then(() => undefined, messageOf);
      if (missing !== undefined) reportSkipped(`not tested with a stepped clock: ${missing}`);
      const options = { seed: SEED, minutes: 1, say: () => undefined };
      chaos = await Chaos.begin(options, { isBuilt: true, sparesNone: true, stepsClock: missing === undefined });
    });

    after(async () => {
      await load?.end();
      await (chaos as Chaos | undefined)?.stop();
    });

    it(`answer ${String(ADMISSIONS_PER_SECOND)} admissions a second without a failure while certificate and CA are replaced and the leader of ipam is killed`, async () => {
      load = await AdmissionLoad.begin(chaos.fleet, await chaos.launcher(), ADMISSIONS_PER_SECOND);
      try {
        const [{ waits }] = await Promise.all([
          hit('leader killed', { role: 'ipam' }),
          hit('certificate renewed').then(() => hit('CA replaced')),
        ]);
        expect(Math.max(...Object.values(waits))).to.be.lessThan(TAKEOVER_MS);
      } finally {
        await load.end();
      }
      expect(load.failures.join('\n')).to.equal('');
      expect(Math.min(...Object.values(load.answered)), load.summary()).to.be.greaterThan(100);
    });

    it('go on when one of two API servers hangs with open watches and the wall clock of all processes steps by five minutes, forward and back', async () => {
      const faults = [hit('API server stopped', { length: 0 })];
      if (chaos.fleet.clock !== undefined) faults.push(hit('clock stepped'));
      await Promise.all(faults);
    });

    it('list again and do no harm when all leaders and an agent wake up after their leases have expired and etcd was compacted', async () => {
      const { waits } = await hit('etcd compacted past stopped watches', { length: 0 });
      expect(Math.max(...Object.values(waits))).to.be.lessThan(DISCOVERY_MS);
    });

    it('have lost, leaked and duplicated no address, and every VM has its own', async () => {
      const report = await chaos.end();
      if (process.env.REPORT) await writeFile(process.env.REPORT, `${markdown(report)}\n\n${load?.summary() ?? ''}\n`);
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
