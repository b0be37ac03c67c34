import { expect } from 'chai';
import type { IPAMClaim } from '../api/ipam-claim.js';
import type { Condition } from '../api/meta.js';
import type { EventSubject } from '../kube/events.js';
import { silentLogger } from '../kube/log.js';
import { type ParsedNad, transformClaim } from '../cluster/transforms.js';
import { ManualClock } from '../test/manual-clock.js';
import { holdfastConfig, nad } from '../test/objects/pool-objects.js';
import { claim } from '../test/objects/workload-objects.js';
import { reportUnansweredClaims } from './unanswered-claims.js';

const START = Date.UTC(2026, 0, 1);
const OURS = nad('vms/blue', holdfastConfig({}, 'blue-net'));
const SAID = (type: string): Condition[] => [
  { type, status: 'False', reason: 'SubnetExhausted', message: 'x', lastTransitionTime: '' },
];

describe('claims without an answer from ipam', () => {
  class Bed {
    readonly clock = new ManualClock(START);
    readonly events: string[] = [];
    claims: IPAMClaim[] = [claim()];
    nad: ParsedNad | undefined = OURS;
    open = true;
    readonly unanswered = reportUnansweredClaims({
      claims: { list: () => this.claims.map(transformClaim) },
      networks: { get: (key) => (key === 'vms/blue' ? this.nad : undefined) },
      events: {
        event: ({ kind, metadata }: EventSubject, type, reason, text) =>
          void this.events.push(`${type} ${reason} on ${kind} ${metadata.name}: ${text}`),
      },
      clock: this.clock,
      log: silentLogger,
      gate: { isOpen: () => this.open },
      afterMs: 60_000,
    });

    async pass(seconds: number): Promise<void> {
      await this.clock.stepThrough(this.clock.now() + seconds * 1_000);
    }
  }

  let bed: Bed;
  beforeEach(() => {
    bed = new Bed();
    bed.unanswered.start();
  });
  afterEach(() => bed.unanswered.stop());

  it('are reported once, on the claim and its VM, after a minute', async () => {
    await bed.pass(59);
    expect(bed.events).to.deep.equal([]);
    await bed.pass(600);
    const text =
      /IPAMClaim vm1\.data has no addresses: holdfast-ipam has not written its status within 60 s\. Check that a holdfast-ipam pod/;
    expect(bed.events).to.have.lengthOf(2);
    expect(bed.events[0])
      .to.match(/^Warning IPAMNotAnswering on IPAMClaim vm1\.data/)
      .and.to.match(text);
    expect(bed.events[1])
      .to.match(/^Warning IPAMNotAnswering on VirtualMachine vm1/)
      .and.to.match(text);
  });

  it('are reported again while it lasts, because the API server deletes an event after an hour', async () => {
    await bed.pass(35 * 60);
    expect(bed.events).to.have.length(4);
  });

  it('are reported only after each has waited for a minute', async () => {
    await bed.pass(50);
    bed.claims = [claim({ name: 'vm2.data' })];
    await bed.pass(50);
    expect(bed.events).to.deep.equal([]);
  });

  for (const [what, change] of [
    ['has addresses', () => (bed.claims = [claim({ ips: ['10.0.0.5/24'] })])],
    [
      'says why it has none',
      () => (bed.claims = [{ ...claim(), status: { ips: [], conditions: SAID('IPsAllocated') } }]),
    ],
    ['is being deleted', () => (bed.claims = [claim({ deleting: true })])],
    ['is for a NAD of another IPAM', () => (bed.nad = nad('vms/blue', { name: 'blue-net', ipam: { type: 'dhcp' } }))],
    ['is for a NAD that is gone', () => (bed.nad = undefined)],
    ['comes while the feature gate is closed', () => (bed.open = false)],
  ] as const) {
    it(`do not include one that ${what}`, async () => {
      change();
      await bed.pass(300);
      expect(bed.events).to.deep.equal([]);
    });
  }

  it('include those with a condition of another writer', async () => {
    bed.claims = [{ ...claim(), status: { ips: [], conditions: SAID('Theirs') } }];
    await bed.pass(300);
    expect(bed.events).to.have.lengthOf(2);
  });
});
