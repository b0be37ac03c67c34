import { expect } from 'chai';
import fc from 'fast-check';
import { parseAddress } from '../addressing/address/address.js';
import type { IPAMClaim } from '../api/ipam-claim.js';
import type { VmiInterfaceStatus } from '../api/kubevirt.js';
import { GUEST_CONFIGURED } from '../api/names.js';
import { conditionsAfter } from '../cluster/claim-conditions.js';
import { type GuestReport, GuestReports, type InterfaceReport, guestConfigured } from './guest-reports.js';
import { guestInterfacesOf } from './interfaces.js';
import type { ObservedGuestWorkload } from './observed-workload.js';
import { GuestWorld, guestSpec, guestWorkload } from './testing/guest-world.js';

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

  function report(
    address: string | undefined,
    options: { phase?: string; vmi?: string; state?: string } = {},
  ): GuestReport {
    const { phase = 'Running', vmi = 'vmi-uid', state = 'up' } = options;
    const spec = guestSpec([{ name: 'data', nad: 'data', sriov: {}, state }]);
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

  it('shows nothing of an interface whose owner has set its link down', () => {
    report(undefined, { state: 'down' });
    now = GRACE_MS;
    expect(report(undefined, { state: 'down' })).to.deep.equal({ condition: undefined });
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

const AGENT = 'domain, guest-agent, multus-status';
const V4 = '10.1.0.5';
const V6 = 'fd00:1::5';

function check(
  status: VmiInterfaceStatus | undefined,
  launcherHasAddresses: InterfaceReport['launcherHasAddresses'] = 'no',
  claimed = [V4],
) {
  return guestConfigured({ vmNetwork: 'data', claimed: claimed.map(parseAddress), status, launcherHasAddresses });
}

const withAgent = (...ipAddresses: string[]): VmiInterfaceStatus => ({ name: 'data', infoSource: AGENT, ipAddresses });
const withoutAgent = (...ipAddresses: string[]): VmiInterfaceStatus => ({ infoSource: 'domain', ipAddresses });

describe('the condition GuestConfigured', () => {
  const cases: { name: string; given: Parameters<typeof check>; expect: [string, string, string] }[] = [
    {
      name: 'is True if the agent reports the address',
      given: [withAgent(V4)],
      expect: ['True', 'Configured', 'The guest has 10.1.0.5 on "data"'],
    },
    {
      name: 'is True if the guest has more addresses than its own',
      given: [withAgent('10.1.0.9', V4, 'fe80::1')],
      expect: ['True', 'Configured', 'The guest has 10.1.0.5'],
    },
    {
      name: 'is False if the agent reports another address',
      given: [withAgent('10.1.0.7')],
      expect: [
        'False',
        'OtherAddress',
        'The guest has 10.1.0.7 on "data", its claim says 10.1.0.5: renew DHCP, or restart the VM',
      ],
    },
    {
      name: 'is False if the agent reports no address of the family',
      given: [withAgent('fe80::1', V6)],
      expect: ['False', 'AddressMissing', 'The guest has no IPv4 address on "data", its claim says 10.1.0.5'],
    },
    {
      name: 'is False for one family although the other one is right',
      given: [withAgent(V4, 'fe80::1'), 'no', [V4, V6]],
      expect: ['False', 'AddressMissing', 'The guest has no IPv6 address on "data", its claim says fd00:1::5'],
    },
    {
      name: 'is Unknown without a guest agent',
      given: [withoutAgent()],
      expect: ['Unknown', 'NoGuestAgent', 'Without a guest agent, nobody knows the addresses of the guest on "data"'],
    },
    {
      name: 'is Unknown before KubeVirt shows the interface',
      given: [undefined],
      expect: ['Unknown', 'NoGuestAgent', ''],
    },
    {
      name: 'is Unknown if KubeVirt shows the address of the launcher',
      given: [withAgent(V4), 'yes'],
      expect: ['Unknown', 'ShownFromLauncher', 'KubeVirt may show the IPv4 address of the launcher on "data"'],
    },
    {
      name: 'is False if the guest has another IPv6 address than its launcher, as KubeVirt 1.9 shows with bridge binding',
      given: [withAgent(V4, 'fd00:1::9'), 'yes', [V4, V6]],
      expect: [
        'False',
        'OtherAddress',
        'The guest has fd00:1::9 on "data", its claim says fd00:1::5: use network data',
      ],
    },
    {
      name: "is False if the guest has no IPv6 address, which KubeVirt's DHCP does not give it",
      given: [withAgent(V4, 'fe80::1'), 'yes', [V4, V6]],
      expect: ['False', 'AddressMissing', "use network data, because KubeVirt's DHCP gives no IPv6 address"],
    },
    {
      name: 'is False if the launcher has the address and the agent none, which KubeVirt then removes',
      given: [withAgent(), 'yes'],
      expect: ['False', 'AddressMissing', 'The guest has no IPv4 address'],
    },
    {
      name: 'is Unknown if the launcher may have made an IPv6 address by itself',
      given: [withAgent('fd00:1::abcd'), 'by-itself', [V6]],
      expect: ['Unknown', 'ShownFromLauncher', 'set disableContainerInterface in the NetworkAttachmentDefinition'],
    },
    {
      name: 'is True for the IPv6 address of the claim, which the launcher cannot make by itself',
      given: [withAgent(V6), 'by-itself', [V6]],
      expect: ['True', 'Configured', 'The guest has fd00:1::5'],
    },
    {
      name: 'reads addresses in any notation, and ignores what is none',
      given: [withAgent('FD00:0001:0::0005', 'rm -rf', '10.1.0.5/24'), 'no', [V4, V6]],
      expect: ['True', 'Configured', 'The guest has 10.1.0.5 on "data". The guest has fd00:1::5 on "data"'],
    },
  ];
  for (const {
    name,
    given,
    expect: [status, reason, message],
  } of cases) {
    it(name, () => {
      const found = check(...given);
      expect([found.status, found.reason]).to.deep.equal([status, reason]);
      expect(found.message).to.include(message);
    });
  }

  it('repeats nothing of what a guest reports but addresses', () => {
    const text = fc.oneof(fc.string({ unit: 'binary' }), fc.ipV4(), fc.ipV6());
    fc.assert(
      fc.property(fc.array(text, { maxLength: 16 }), text, (ipAddresses, infoSource) => {
        const { message } = check({ infoSource: `guest-agent,${infoSource}`, ipAddresses }, 'no', [V4, V6]);
        expect(message).to.match(/^[ -~]{1,500}$/);
      }),
      { numRuns: 50 },
    );
  });
});
