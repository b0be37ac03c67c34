import { expect } from 'chai';
import { RESPONDERS_NAMESPACE } from '../../api/names.js';
import { parseAddress } from '../../addressing/address/address.js';
import type { ProbingStop } from '../leases/probing-stop.js';
import type { ClaimObservation } from './observe.js';
import { plan } from './plan.js';
import type { Findings } from './sync-state.js';
import { shouldProbe } from './probing.js';
import { type ClaimScenario, describeStep, lease, observationOf } from './testing/claim-observation.js';

const HOST = '02:00:00:00:00:99';
const PROXY = (): ProbingStop => ({ reason: 'ProxyARP', mac: HOST, leases: [] });
const FULL = (): ProbingStop => ({ reason: 'QuarantineFull', leases: [] });
const LIVE: Findings = { isLive: true, arePodsLive: true };
const NEW: ClaimScenario = { pool: 'v4', probes: {} };

function stepOf(given: ClaimScenario, findings: Findings = LIVE, changes: Partial<ClaimObservation> = {}): string {
  return describeStep(plan({ ...observationOf(given), ...changes }, findings));
}

describe('an address that is allocated to a claim', () => {
  const isProbed = (given: ClaimScenario, changes: Partial<ClaimObservation> = {}) =>
    shouldProbe({ ...observationOf(given), ...changes }, 4);

  it('is probed before the claim shows its first addresses', () => {
    expect(isProbed(NEW)).to.equal(true);
    expect(isProbed({ ...NEW, pods: ['waits'] })).to.equal(true);
  });

  const running = { kind: 'addresses' as const, addresses: [parseAddress('10.0.0.5')], launchers: new Set(['p1']) };
  const [pod] = observationOf({ pods: ['p1'] }).pods;
  const ofResponder = observationOf(NEW).claim;
  Object.assign(ofResponder.metadata, { namespace: RESPONDERS_NAMESPACE, name: 'holdfast-responder-0123abcd-0' });
  const exceptions: [string, ClaimScenario, Partial<ClaimObservation>?][] = [
    ['if the pool does not probe', { pool: 'v4' }],
    ['if no pool serves the claim', { pool: null, probes: {} }],
    ['if the claim shows one, as after a restore or for a migration target', { ...NEW, ips: ['10.0.0.5/24'] }],
    ['if its VM runs with it', NEW, { running }],
    ['if a launcher of its VM runs', NEW, { pods: [{ ...pod!, vmi: { name: 'vm1', uid: 'u1' } }] }],
    ['if the claim is being deleted', { ...NEW, deleting: true }],
    ['while probing is stopped', { ...NEW, probing: { stop: FULL } }],
    ['after four addresses in a row were taken', { ...NEW, probing: { quarantinedInARow: (f) => (f === 4 ? 4 : 0) } }],
    ['of a responder', NEW, { claim: ofResponder }],
  ];
  for (const [name, given, changes] of exceptions) {
    it(`is not probed ${name}`, () => expect(isProbed(given, changes)).to.equal(false));
  }

  it('is probed if only addresses of the other family were taken', () => {
    const observed = observationOf({ ...NEW, probing: { quarantinedInARow: (family) => (family === 4 ? 4 : 0) } });
    expect(shouldProbe(observed, 6)).to.equal(true);
  });
});

describe('the next step of a claim whose address is probed', () => {
  const ASKED: ClaimScenario = { pool: 'v4', held: ['10.0.0.5'], probes: { '10.0.0.5': 'requested' } };
  const TAKEN: ClaimScenario = { pool: 'v4', held: ['10.0.0.5'], probes: { '10.0.0.5': { taken: HOST } } };
  const DUAL: ClaimScenario = { held: ['10.0.0.5', '2001:db8::5'] };
  const since = (now: number) => ({ now, requestedAt: () => 1_000 });

  const rows: [string, string, ClaimScenario, Partial<ClaimObservation>?][] = [
    ['is to wait for the answer', 'await-probe until 3000', { ...ASKED, probing: since(2_999) }],
    [
      'is to end the probe without an answer after two seconds',
      'skip-probe 10.0.0.5: NoAnswer',
      { ...ASKED, probing: since(3_000) },
    ],
    [
      'is to end the probe if probing stops',
      'skip-probe 10.0.0.5: ProbingStopped',
      { ...ASKED, probing: { stop: FULL } },
    ],
    [
      'is to end the probe if the pool does not probe any more',
      'skip-probe 10.0.0.5: NotApplicable',
      ASKED,
      { ...observationOf({ ...ASKED, probes: undefined as never }), held: observationOf(ASKED).held },
    ],
    [
      'is to show an address that is free',
      'write [10.0.0.5/24] SuccessfulAllocation',
      { ...ASKED, probes: { '10.0.0.5': 'free' } },
    ],
    [
      'is to show an address for which only its own guest answers',
      'write [10.0.0.5/24] SuccessfulAllocation',
      { ...ASKED, probes: { '10.0.0.5': 'self' } },
    ],
    ['is to quarantine an address that another host has', `quarantine 10.0.0.5 of ${HOST}`, TAKEN],
    [
      'is to quarantine a requested address that another host has',
      `quarantine 10.0.0.5 of ${HOST}, requested`,
      { ...TAKEN, request: '["10.0.0.5"]' },
    ],
    [
      'is to quarantine an address of one family while the other one is probed',
      `quarantine 2001:db8::5 of ${HOST}`,
      { ...DUAL, probes: { '10.0.0.5': 'requested', '2001:db8::5': { taken: HOST } } },
    ],
    [
      'is to wait for both families',
      'await-probe until 2000',
      { ...DUAL, probes: { '10.0.0.5': 'free', '2001:db8::5': 'requested' } },
    ],
    [
      'is to ignore the answer of a host that answers for everything',
      'skip-probe 10.0.0.5: ProbingStopped',
      { ...TAKEN, probing: { stop: PROXY } },
    ],
    [
      'is to release an address that another host has while no more addresses may be quarantined',
      'release 10.0.0.5',
      { ...TAKEN, probing: { stop: FULL } },
    ],
    [
      'is to accept a requested address while no more addresses may be quarantined',
      'skip-probe 10.0.0.5: ProbingStopped',
      { ...TAKEN, request: '["10.0.0.5"]', probing: { stop: FULL } },
    ],
    [
      'is to allocate an address instead of a quarantined one, of the same family only',
      'allocate for need: any v4',
      { held: ['2001:db8::5'], probes: { '2001:db8::5': 'free' } },
    ],
  ];
  for (const [name, expected, given, changes] of rows) {
    it(name, () => expect(stepOf(given, LIVE, changes)).to.equal(expected));
  }

  it('is to end the probe of a lease of an earlier pool', () => {
    const held = [{ ...lease('10.0.0.5'), pool: 'former', probe: { taken: HOST } }];
    expect(stepOf(ASKED, LIVE, { held })).to.equal('skip-probe 10.0.0.5: NotApplicable');
  });

  it('is to read the claim live before an address is quarantined or released', () => {
    const cached = { isLive: false, arePodsLive: false };
    expect(stepOf(TAKEN, cached)).to.equal('read-claim');
    expect(stepOf({ ...TAKEN, probing: { stop: FULL } }, cached)).to.equal('read-claim');
  });

  it('says in the condition that an address was not probed', () => {
    const step = plan(observationOf({ ...ASKED, probes: { '10.0.0.5': 'skipped' } }), LIVE);
    expect(step.kind === 'write-status' && step.desired.allocated.message).to.equal(
      'Leased from AddressPool blue. ProbeSkipped: 10.0.0.5 was not probed for other hosts',
    );
  });

  for (const probe of ['requested', { taken: HOST }] as const) {
    it(`is never about the probe if the claim shows the address: ${JSON.stringify(probe)}`, () => {
      const observed = observationOf({ pool: 'v4', ips: ['10.0.0.5/24'], probes: { '10.0.0.5': probe } });
      const held = [{ ...lease('10.0.0.5'), probe }];
      expect(describeStep(plan({ ...observed, held }, LIVE))).to.equal('write [10.0.0.5/24] SuccessfulAllocation');
    });
  }
});
