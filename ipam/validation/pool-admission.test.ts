import { expect } from 'chai';
import { silentLogger } from '../../kube/log.js';
import { ManualClock } from '../../test/manual-clock.js';
import { adminPool } from '../../test/objects/pool-objects.js';
import { slowLookup } from '../../test/objects/slow-pool.js';
import { TurnCounter } from '../../test/turn-counter.js';
import { createPoolReviewer } from './pool-admission.js';
import { validationViewOf } from './testing/validation-view.js';

describe('the review of an AddressPool', () => {
  it('lets other work of the process run after each 20 ms in which it compares pools', async () => {
    const [clock, counter] = [new ManualClock(0), new TurnCounter()];
    const pools = Array.from({ length: 6 }, (_, n) => adminPool(`p${n}`, { network: `n${n}`, addressSpace: 'blue' }));
    const view = validationViewOf({ pools });
    const comparedIn: number[] = [];
    const pool = slowLookup(
      (name) => view.networks.pool(name),
      clock,
      () => comparedIn.push(counter.turns),
    );
    const reviewer = createPoolReviewer({
      view: {
        ...view,
        networks: { nadsOf: () => [], poolsOf: () => [], poolsIn: () => [], poolsBySegment: new Map(), pool },
      },
      waitForSync: () => Promise.resolve(undefined),
      log: silentLogger,
      metrics: { reviewed: () => undefined, denied: () => undefined },
      clock,
    });
    const resource = { group: 'ipam.holdfast.dev', version: 'v1alpha1', resource: 'addresspools' };
    const request = { uid: 'u', operation: 'CREATE', resource, object: adminPool('p') };
    const answer = await reviewer.answer({ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', request });
    counter.stop();
    const { response } = JSON.parse(answer) as { response: { allowed: boolean; warnings: string[] } };
    expect([response.allowed, response.warnings.length]).to.deep.equal([true, 5]);
    expect([comparedIn.length, new Set(comparedIn).size]).to.deep.equal([6, 3]);
  });
});
