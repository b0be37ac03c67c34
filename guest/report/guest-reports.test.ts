import { expect } from 'chai';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import { conditionsAfter } from '../../cluster/claim-conditions.js';
import { GUEST_CONFIGURED } from '../../api/names.js';
import { guestInterfacesOf } from '../interfaces.js';
import type { ObservedGuestWorkload } from '../observed-workload.js';
import { GuestWorld, guestSpec, guestWorkload } from '../testing/guest-world.js';
import { type GuestReport, GuestReports } from './guest-reports.js';

const GRACE_MS = 60_000;

describe('the report of what a guest has', () => {
  let world: GuestWorld;
  let reports: GuestReports;
  let claim: IPAMClaim;
  let now: number;

  beforeEach(() => {
    world = new GuestWorld();
    world.addNetwork('data', [{ cidr: '10.1.0.0/24' }]);
    claim = world.addClaim('data', ['10.1.0.5/24']);
    reports = new GuestReports(GRACE_MS);
    now = 0;
  });

  function report(address: string | undefined, options: { phase?: string; vmi?: string } = {}): GuestReport {
    const { phase = 'Running', vmi = 'vmi-uid' } = options;
    const spec = guestSpec([{ name: 'data', nad: 'data', sriov: {} }]);
    const workload = guestWorkload(spec);
    const infoSource = 'domain, guest-agent';
    const interfaces = [{ name: 'data', infoSource, ipAddresses: address === undefined ? [] : [address] }];
    const object = { metadata: { name: 'vm1', namespace: 'vms', uid: vmi }, status: { phase, interfaces } };
    const observed = { ...workload, vmi: object } as unknown as ObservedGuestWorkload;
    const own = guestInterfacesOf(workload, world.view).find(({ source }) => source.kind === 'claim');
    const made = reports.report(claim, own, observed, now);
    if (made.isChange) {
      const conditions = conditionsAfter(claim, { [GUEST_CONFIGURED]: made.condition }, 0);
      claim = { ...claim, status: { ips: [], ...claim.status, conditions } };
      world.claims.set(claim);
      reports.changed(claim, now);
    }
    return made;
  }

  it('shows at once that the guest has its addresses, and a mismatch only after the grace period', () => {
    expect(report('10.1.0.7')).to.deep.equal({ condition: undefined, again: GRACE_MS });
    now = GRACE_MS - 1;
    expect(report('10.1.0.7')).to.deep.equal({ condition: undefined, again: 1 });
    expect(report('10.1.0.5').condition).to.include({ status: 'True' });
  });

  it('shows a mismatch after the grace period', () => {
    report(undefined);
    now = GRACE_MS;
    expect(report('10.1.0.7')).to.have.nested.include({
      'condition.status': 'False',
      'condition.reason': 'OtherAddress',
    });
  });

  it('begins the grace period anew when the VM restarts, and when its claim changes', () => {
    report('10.1.0.7');
    now = GRACE_MS;
    expect(report('10.1.0.7', { vmi: 'next' })).to.include({ condition: undefined, again: GRACE_MS });
    now = 2 * GRACE_MS;
    expect(report('10.1.0.7', { vmi: 'next' }).condition).to.include({ status: 'False' });
    claim = { ...claim, status: { ...claim.status, ips: ['10.1.0.8/24'] } };
    world.claims.set(claim);
    now = 3 * GRACE_MS;
    expect(report('10.1.0.7', { vmi: 'next' }).again).to.equal(GRACE_MS);
  });

  it('forgets a claim that the VM no longer has', () => {
    reports.retain('vms/vm1', [claim]);
    report('10.1.0.7');
    now = GRACE_MS - 1;
    reports.retain('vms/vm1', [claim]);
    expect(report('10.1.0.7').again).to.equal(1);
    reports.retain('vms/vm1', []);
    expect(report('10.1.0.7').again).to.equal(GRACE_MS);
  });

  it('is absent while the VM does not run', () => {
    expect(report('10.1.0.5', { phase: 'Scheduled' })).to.deep.equal({ condition: undefined });
  });

  it('changes three times at once and then every 30 seconds, however often the addresses of a guest change', () => {
    report(undefined);
    now = GRACE_MS;
    const changes: number[] = [];
    for (let step = 0; step <= 120; step++) {
      const made = report(step % 2 === 0 ? '10.1.0.7' : '10.1.0.5');
      if (made.isChange) changes.push(step);
      else if (made.again !== undefined) expect(made.again).to.be.within(1, 30_000);
      now += 1_000;
    }
    expect(changes.slice(0, 3)).to.deep.equal([0, 1, 2]);
    expect(changes.length).to.be.within(5, 7);
  });
});
