import { expect } from 'chai';
import type { AddressLease } from '../../../api/address-lease.js';
import type { IPAMClaim } from '../../../api/ipam-claim.js';
import { CLAIM_INDEXES } from '../../../cluster/watch-specs.js';
import { Cache } from '../../../kube/informers/cache.js';
import type { EventSubject } from '../../../kube/events.js';
import { silentLogger } from '../../../kube/log.js';
import { leaseOf } from '../../../test/objects/lease-objects.js';
import { ManualClock } from '../../../test/manual-clock.js';
import { adminPool, cacheOf, holdfastConfig, nad } from '../../../test/objects/pool-objects.js';
import { claim } from '../../../test/objects/workload-objects.js';
import { readLease } from '../../../addressing/lease/lease.js';
import { PoolDirectory } from '../../../addressing/directory/directory.js';
import type { ClaimPod } from './claim-pods.js';
import { reportUnleasedAddresses } from './unleased-addresses.js';

const START = Date.UTC(2026, 0, 1);
const NETWORKS = [nad('vms/blue', holdfastConfig()), nad('vms/other', { name: 'other', type: 'bridge' })];

function launcher(ips: readonly string[], more: Partial<ClaimPod> = {}): ClaimPod {
  return {
    metadata: { name: 'launcher', namespace: 'vms', uid: 'pod-uid' },
    isTerminal: false,
    isRunning: true,
    claims: [],
    vmi: { name: 'vm1', uid: 'vmi-uid' },
    interfaces: JSON.stringify([{ nad: 'vms/blue', ips }]),
    ...more,
  };
}

const MINE = leaseOf('10.0.0.2', 1, { name: 'vm1.data', namespace: 'vms' });
const THEIRS = leaseOf('10.0.0.2', 1, { name: 'vm2.data', namespace: 'vms' });
const OF_POD = leaseOf('10.0.0.2', 1);
OF_POD.spec.owner = { kind: 'Pod', namespace: 'vms', name: 'launcher', uid: 'pod-uid' };

describe('the addresses of running launchers', () => {
  let clock: ManualClock;
  let events: string[];
  let counts: number[];
  let pods: ClaimPod[];
  let leases: AddressLease[];
  let report: ReturnType<typeof reportUnleasedAddresses>;

  beforeEach(() => {
    clock = new ManualClock(START);
    events = [];
    counts = [];
    leases = [];
    pods = [];
    const claims = new Cache<IPAMClaim>(CLAIM_INDEXES);
    claims.set(claim());
    const networks = cacheOf(NETWORKS);
    const pools = cacheOf([adminPool('blue', { cidr: '10.0.0.0/29' })]);
    report = reportUnleasedAddresses({
      pods: { list: () => pods },
      claims,
      networks,
      directory: new PoolDirectory({ pools, networks }),
      book: {
        get: (name) => {
          const lease = leases.find(({ metadata }) => metadata.name === name);
          return lease && readLease(lease);
        },
      },
      events: {
        event: ({ kind, metadata }: EventSubject, type, reason, text) =>
          void events.push(`${type} ${reason} on ${kind} ${metadata.name}: ${text}`),
      },
      clock,
      log: silentLogger,
      config: { collectAfterMs: 60_000 },
      count: (addresses) => counts.push(addresses),
    });
    report.start();
  });
  afterEach(() => report.stop());

  const after = (seconds: number) => clock.stepThrough(START + seconds * 1_000);
  const warning = (kind: string, danger: string) =>
    `Warning AddressNotLeased on ${kind} vm1: Launcher launcher has address 10.0.0.2 of AddressPool blue, which is ${danger}. ` +
    'Restart the VM: it then gets the addresses of its claim';

  it('are reported once on the VM if another workload has the lease', async () => {
    pods = [launcher(['10.0.0.2'])];
    leases = [THEIRS];
    await after(50);
    expect(events).to.deep.equal([]);
    await after(600);
    expect(events).to.deep.equal([warning('VirtualMachine', 'leased to another workload')]);
    expect(counts.at(-1)).to.equal(1);
  });

  it('are reported again while it lasts, because the API server deletes an event after an hour', async () => {
    pods = [launcher(['10.0.0.2'])];
    await after(3 * 3_600);
    expect(events).to.have.length.within(5, 6);
  });

  it('are reported on a VMI without claims', async () => {
    pods = [launcher(['10.0.0.2'], { metadata: { name: 'launcher', namespace: 'elsewhere', uid: 'pod-uid' } })];
    leases = [THEIRS];
    await after(120);
    expect(events).to.deep.equal([warning('VirtualMachineInstance', 'leased to another workload')]);
  });

  for (const [name, lease] of [
    ['there is no lease', []],
    ['the lease is released', [leaseOf('10.0.0.2', 1, { name: 'vm1.data', namespace: 'vms', releasedAt: START })]],
  ] as const) {
    it(`are reported if ${name}`, async () => {
      pods = [launcher(['10.0.0.2'])];
      leases = [...lease];
      await after(120);
      expect(events).to.deep.equal([warning('VirtualMachine', 'not leased: another workload may get it')]);
    });
  }

  const right: { name: string; pods: ClaimPod[]; leases: AddressLease[] }[] = [
    { name: 'a claim of the VM has the lease', pods: [launcher(['10.0.0.2'])], leases: [MINE] },
    { name: 'the launcher has the lease', pods: [launcher(['10.0.0.2'])], leases: [OF_POD] },
    { name: 'the pod has ended', pods: [launcher(['10.0.0.2'], { isTerminal: true })], leases: [] },
    { name: 'the pod does not run yet', pods: [launcher(['10.0.0.2'], { isRunning: false })], leases: [] },
    { name: 'the address is outside of the pool', pods: [launcher(['192.0.2.7'])], leases: [] },
    { name: 'the address cannot be read', pods: [launcher(['10.0.0.2', 'x'])], leases: [] },
    {
      name: 'the network has another IPAM',
      pods: [launcher([], { interfaces: JSON.stringify([{ nad: 'vms/other', ips: ['10.0.0.2'] }]) })],
      leases: [],
    },
    {
      name: 'the network is unknown',
      pods: [launcher([], { interfaces: JSON.stringify([{ nad: 'cluster-default', ips: ['10.0.0.2'] }]) })],
      leases: [],
    },
  ];
  for (const row of right) {
    it(`are not reported if ${row.name}`, async () => {
      ({ pods, leases } = row);
      await after(300);
      expect(events).to.deep.equal([]);
      expect(counts.at(-1)).to.equal(0);
    });
  }

  it('are not reported if the lease comes in time', async () => {
    pods = [launcher(['10.0.0.2'])];
    await after(50);
    leases = [MINE];
    await after(300);
    expect(events).to.deep.equal([]);
  });
});
