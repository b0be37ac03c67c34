import { expect } from 'chai';
import { claim } from '../../test/objects/workload-objects.js';
import {
  claimWithCondition,
  describeStories,
  eventOn,
  observedVm,
  runningLauncher,
  storyOf,
  tracedVm,
  tracedVmi,
} from '../testing/vm-story.js';
import { traceVm } from './trace.js';

const NO_RIGHTS = 'user "eve" may not list addressleases.ipam.holdfast.dev in the whole cluster';

describeStories('the story of a VM of which some parts may not be read', [
  {
    title: 'a VM of a user who may not read leases, pools and agents',
    given: { leases: NO_RIGHTS, pools: NO_RIGHTS, agents: { n1: NO_RIGHTS } },
    health: 'unknown',
    includes: ['AddressLease: not shown', `unknown ${NO_RIGHTS}`, 'Node n1: agent not shown'],
  },
  {
    title: 'a VM of a user who may not read NADs and leases',
    given: { leases: NO_RIGHTS, pools: NO_RIGHTS, nads: { blue: 'no NADs' } },
    health: 'unknown',
    includes: ['IPAMClaim vms/vm1.data: 10.0.0.5/24', 'AddressLease: not shown', 'unknown no NADs'],
  },
  {
    title: 'a VM of a user who has no rights at all',
    given: {
      vm: 'no VMs',
      vmi: 'no VMIs',
      pods: 'no pods',
      claims: 'no claims',
      events: 'no',
      nads: { blue: 'no NADs' },
    },
    health: 'unknown',
    includes: ['VirtualMachine vms/vm1: not shown', 'unknown no VMs', 'unknown no VMIs'],
  },
  {
    title: 'a VM of a user who may read VMs only',
    given: { pods: 'no pods', claims: 'no claims', events: 'no events', nads: { blue: 'no NADs' } },
    health: 'unknown',
    includes: ['Pod vms: not shown', 'unknown no pods', 'unknown no NADs', 'unknown no claims'],
  },
]);

describe('the story of a VM', () => {
  it('is a tree of its instance, launchers and node, and of its networks, claims and leases', () => {
    const { lines, health } = storyOf({});
    expect(health).to.equal('ok');
    expect(lines.split('\n')).to.deep.equal([
      'VirtualMachine vms/vm1: Running',
      '  VirtualMachineInstance vms/vm1: Running on n1',
      '    Pod vms/virt-launcher-vm1-abcde: Running on n1',
      '      Node n1: agent ready',
      '  Network data: NAD vms/blue, CNI network blue-net',
      '    IPAMClaim vms/vm1.data: 10.0.0.5/24',
      '      AddressLease blue.10-0-0-5: IPAMClaim vms/vm1.data, on n1, pool blue',
      '      AddressPool blue: 253 of 254 free',
    ]);
  });

  for (const reason of ['TrafficNotOfClaim', 'GuardNotApplied']) {
    it(`warns with the newest event ${reason} of the guard of an interface, if the VM runs`, () => {
      const events = [eventOn('vm1', reason, 'Interface net1 of pod vms/virt-launcher-vm1 sends traffic')];
      const { lines, health } = storyOf({ events });
      expect(health).to.equal('warning');
      expect(lines).to.include(`warning ${reason}: Interface net1`);
    });
  }

  it('says, while the launcher runs, that it uses an address that is not leased to it', () => {
    const message = (launcher: string) =>
      `Launcher ${launcher} has address 10.0.0.9 of AddressPool blue, which is not leased`;
    const story = (launcher: string) => storyOf({ events: [eventOn('vm1', 'AddressNotLeased', message(launcher))] });
    expect(story('virt-launcher-vm1-abcde').health).to.equal('wrong');
    expect(story('virt-launcher-vm1-abcde').lines).to.include('wrong AddressNotLeased: Launcher');
    expect(story('virt-launcher-vm1-before').health).to.equal('ok');
  });

  it('begins with the VMI if there is no VM', () => {
    const standalone = { ...tracedVmi(), metadata: { ...tracedVmi().metadata, ownerReferences: [] } };
    const { lines } = storyOf({ vm: null, vmi: standalone, claims: [], leases: [] });
    expect(lines.split('\n')[0]).to.equal('VirtualMachineInstance vms/vm1: Running on n1');
    expect(lines).to.include('Network data');
  });

  it('does not exist if there is neither a VM nor a VMI', () => {
    expect(traceVm(observedVm({ vm: null, vmi: null }))).to.equal(undefined);
  });

  it('ignores launchers of other VMIs, and those that have ended', () => {
    const foreign = runningLauncher({ name: 'virt-launcher-vm1-foreign' });
    const pods = [
      runningLauncher(),
      runningLauncher({ name: 'virt-launcher-vm1-ended', phase: 'Succeeded' }),
      { ...foreign, metadata: { ...foreign.metadata, ownerReferences: [] } },
    ];
    expect(storyOf({ pods }).lines.match(/Pod vms/g)).to.have.length(1);
  });

  it('is short for a VM with hostile objects', () => {
    const networks = Object.fromEntries(Array.from({ length: 5_000 }, (_, index) => [`n${index}`, 'blue']));
    const long = 'x'.repeat(100_000);
    const events = Array.from({ length: 5_000 }, () => eventOn('vm1', 'IPAMClaimQuotaExceeded', long));
    const pods = Array.from({ length: 500 }, (_, index) => runningLauncher({ name: `virt-launcher-vm1-${index}` }));
    const claims = Array.from({ length: 500 }, (_, index) => claim({ name: `vm1.x${index}`, vmNetwork: `x${index}` }));
    const { lines } = storyOf({ vm: tracedVm(networks), events, pods, claims, leases: [] });
    expect(lines.length).to.be.lessThan(100_000);
    expect(lines).to.include('more, not shown');
  });

  it('contains no characters that a terminal interprets', () => {
    const evil = 'a\u001b[2J\n\u202egnp.exe';
    const message = claimWithCondition(['IPsAllocated', 'False', 'SubnetExhausted', evil]);
    const { lines } = storyOf({ claims: [message], leases: [], events: [eventOn('vm1', 'x', evil)] });
    expect(lines).to.include('a\\u001b[2J \\u202egnp.exe');
    expect(lines).not.to.include('\u001b').and.not.to.include('\u202e');
  });
});
