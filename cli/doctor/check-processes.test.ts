import { expect } from 'chai';
import type { AddressPool } from '../../api/address-pool.js';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import { RESPONDERS_NAMESPACE } from '../../api/names.js';
import { HEALTHY, ago, workloadOf } from '../testing/healthy-cluster.js';
import { checkProcesses, checkResponders } from './check-processes.js';
import type { ProcessPod, InstalledWorkload } from '../installation.js';
import type { ObservedCluster } from './observe.js';

const SET = 'holdfast-responder-0123abcd';
const BRIDGE = { type: 'bridge', bridge: 'br-blue' };

const poolOf = (name: string): AddressPool => ({
  metadata: { name },
  spec: { network: 'blue', subnets: [{ cidr: '10.0.0.0/24' }], guest: { dhcp: {}, attachment: 'blue' } },
});
const nadOf = (config: object) => ({
  metadata: { namespace: RESPONDERS_NAMESPACE, name: 'blue' },
  spec: { config: JSON.stringify({ cniVersion: '1.0.0', name: 'blue', ...config }) },
});
const setOf = (readyReplicas: number): InstalledWorkload => ({
  metadata: { namespace: RESPONDERS_NAMESPACE, name: SET, labels: { 'ipam.holdfast.dev/pool': 'blue' } },
  spec: { replicas: 2 },
  status: { readyReplicas },
});
const claimOf = (ordinal: number, ...ips: string[]): IPAMClaim => {
  const condition = { type: 'IPsAllocated', status: 'False', reason: 'SubnetExhausted', message: 'Pool blue is full' };
  return {
    metadata: { namespace: RESPONDERS_NAMESPACE, name: `${SET}-${ordinal}` },
    spec: { network: 'blue', interface: 'guest0' },
    status: { ips, conditions: ips.length > 0 ? [] : [{ ...condition, status: 'False', lastTransitionTime: '' }] },
  };
};
const pending: ProcessPod = {
  metadata: { namespace: RESPONDERS_NAMESPACE, name: `${SET}-1` },
  status: { phase: 'Pending' },
};
const SERVED: ObservedCluster = {
  ...HEALTHY,
  pools: [poolOf('blue')],
  nads: [nadOf(BRIDGE)],
  responderSets: [setOf(2)],
  claims: [claimOf(0, '10.0.0.2/24'), claimOf(1, '10.0.0.3/24')],
};

const CASES: readonly { name: string; broken: Partial<ObservedCluster>; found: readonly string[] }[] = [
  { name: 'nothing if two responders answer', broken: {}, found: [] },
  {
    name: 'an attachment that does not exist',
    broken: { nads: [], responderSets: [] },
    found: [
      'error AddressPool blue: NetworkAttachmentDefinition holdfast-responders/blue, which spec.guest.attachment names, does not exist: create it',
    ],
  },
  {
    name: 'an attachment that would give the responder an address, even while old pods run',
    broken: { nads: [nadOf({ ...BRIDGE, ipam: { type: 'host-local' } })] },
    found: [
      'error AddressPool blue: NetworkAttachmentDefinition holdfast-responders/blue, which spec.guest.attachment names, has an ipam, so the kernel would answer for the addresses: remove it',
    ],
  },
  {
    name: 'a pool without responders',
    broken: { responderSets: [] },
    found: ['error AddressPool blue: no StatefulSet in holdfast-responders answers DHCP for it'],
  },
  {
    name: 'a second pool of a network, which gets no responders',
    broken: { pools: [poolOf('blue'), poolOf('blue-2')] },
    found: [
      'error AddressPool blue-2: its guests get no answer: the responders of network blue are those of AddressPool blue',
    ],
  },
  {
    name: 'one responder that is not ready',
    broken: { responderSets: [setOf(1)], pods: [pending] },
    found: [
      `warning StatefulSet holdfast-responders/${SET}: 1 of 2 responders of AddressPool blue are ready: ${SET}-1 is Pending`,
    ],
  },
  {
    name: 'an error if no responder is ready',
    broken: { responderSets: [setOf(0)] },
    found: [`error StatefulSet holdfast-responders/${SET}: 0 of 2 responders of AddressPool blue are ready`],
  },
  {
    name: 'responders without an address, because the pool is full or nobody made a claim',
    broken: { claims: [claimOf(1)] },
    found: [
      `warning IPAMClaim holdfast-responders/${SET}-0: the responder has no address of its own, so it does not answer DHCPv4`,
      `warning IPAMClaim holdfast-responders/${SET}-1: the responder has no address of its own, so it does not answer DHCPv4: Pool blue is full`,
    ],
  },
  {
    name: 'nothing about a pool without DHCP, or one that is being deleted',
    broken: {
      pools: [
        { ...poolOf('blue'), spec: { ...poolOf('blue').spec, guest: {} } },
        { ...poolOf('green'), metadata: { name: 'green', deletionTimestamp: '2026-01-01T00:00:00Z' } },
      ],
      responderSets: [],
    },
    found: [],
  },
  {
    name: 'nothing about NADs and claims of which the user may read only those of another namespace',
    broken: { nads: [], claims: [], onlyNamespace: 'lab', narrowed: ['nads', 'claims'] },
    found: [],
  },
  {
    name: 'nothing in what the user may not read',
    broken: { nads: undefined, claims: undefined, pods: undefined, responderSets: undefined },
    found: [],
  },
];

describe('kubectl holdfast doctor, about responders,', () => {
  for (const { name, broken, found } of CASES)
    it(`finds ${name}`, () => {
      const findings = checkResponders({ ...SERVED, ...broken });
      expect(findings.map(({ severity, object, problem }) => `${severity} ${object}: ${problem}`)).to.deep.equal(found);
      for (const { check, remedy } of findings) expect([check, remedy.length > 10]).to.deep.equal(['responders', true]);
    });
});

describe('What the doctor finds about the process guest', () => {
  const guestless = (guest: object | undefined, ...components: string[]) => {
    const workloads = ['agent', ...components].map((component) => workloadOf(component));
    const pools = [{ ...poolOf('blue'), spec: { ...poolOf('blue').spec, guest } } as AddressPool];
    return checkProcesses({ ...HEALTHY, workloads, pools }, '0.1.0')
      .filter(({ check }) => check === 'processes')
      .map(({ severity, object, problem }) => `${severity} ${object}: ${problem}`);
  };
  const separate = ['controller', 'webhook', 'ipam'];
  const missing = [
    'error holdfast-guest: no workload of the component guest exists, so guests of AddressPool blue are told no addresses',
  ];

  it('names the pools whose guests it would tell their addresses by DHCP or cloud-init, if it does not exist', () => {
    expect(guestless({ dhcp: {}, attachment: 'blue' }, ...separate)).to.deep.equal(missing);
    expect(guestless({ networkData: { default: true } }, ...separate)).to.deep.equal(missing);
  });

  it('is nothing if it exists, or no pool needs it', () => {
    expect(guestless({ dhcp: {} }, ...separate, 'guest')).to.deep.equal([]);
    expect(guestless({ dhcp: {} }, 'all')).to.deep.equal([]);
    expect(guestless({}, ...separate)).to.deep.equal([]);
    expect(guestless(undefined, ...separate)).to.deep.equal([]);
  });
});

describe('What the doctor finds about the process capacity', () => {
  const found = (publishCapacity: boolean, ...args: string[][]) => {
    const capacity = args.map((each) => {
      const workload = workloadOf('capacity');
      return {
        ...workload,
        spec: { ...workload.spec, template: { spec: { containers: [{ name: 'a', args: each }] } } },
      };
    });
    const workloads = [
      ...['agent', 'controller', 'webhook', 'ipam'].map((component) => workloadOf(component)),
      ...capacity,
    ];
    const pools = [{ ...poolOf('blue'), spec: { ...poolOf('blue').spec, publishCapacity } }];
    return checkProcesses({ ...HEALTHY, workloads, pools }, '0.1.0')
      .filter(({ object }) => object === 'holdfast-capacity')
      .map(({ severity, problem }) => `${severity}: ${problem}`);
  };

  it('names the pools whose addresses no process shows to the scheduler, because it does not exist or its gate is off', () => {
    const missing = [
      'warning: no workload of the component capacity publishes addresses, so the scheduler does not see those of AddressPool blue',
    ];
    expect(found(true)).to.deep.equal(missing);
    expect(found(true, ['--feature-gates=NodeBlocks=true,PublishCapacity=false'])).to.deep.equal(missing);
  });

  it('is nothing if it runs, or no pool needs it', () => {
    expect(found(true, [])).to.deep.equal([]);
    expect(found(false)).to.deep.equal([]);
  });
});

describe('What the doctor finds about leaders', () => {
  const names = ['controller', 'ipam', 'guest', 'capacity'].map((component) => `holdfast-${component}`);
  const leaders = names.map((name) => ({
    metadata: { namespace: 'holdfast-system', name },
    spec: { holderIdentity: '', renewTime: ago(61_000) },
  }));
  const leaderless = (...components: string[]) => {
    const workloads = components.map((component) => workloadOf(component));
    const found = checkProcesses({ ...HEALTHY, leaders, workloads }, '0.1.0').filter(
      ({ check }) => check === 'leaders',
    );
    return found.map(({ object }) => object.replace('Lease holdfast-system/', ''));
  };

  it('ignores the Lease that a process leaves when it is removed for good', () => {
    expect(leaderless('controller', 'webhook', 'ipam', 'agent')).to.deep.equal([
      'holdfast-controller',
      'holdfast-ipam',
    ]);
    expect(leaderless()).to.deep.equal([]);
  });

  it('says that a process leads nowhere if it may not create its Lease, although its pods are ready', () => {
    const electing = (component: string, ready: number, flag = '--leader-elect') => {
      const workload = workloadOf(component, '0.1.0', ready);
      const [container] = workload.spec?.template?.spec?.containers ?? [];
      container?.args?.push(flag);
      return workload;
    };
    const absent = (workload: InstalledWorkload) =>
      checkProcesses({ ...HEALTHY, leaders: [], workloads: [workload] }, '0.1.0').flatMap(
        ({ check, object, problem }) => (check === 'leaders' ? [`${object} ${problem}`] : []),
      );
    expect(absent(electing('controller', 2))).to.deep.equal([
      'Lease holdfast-system/holdfast-controller does not exist, so no pod leads',
    ]);
    expect(absent(electing('all', 1))).to.have.length(3);
    expect(absent(electing('controller', 0))).to.deep.equal([]);
    expect(absent(electing('controller', 2, '--leader-elect=false'))).to.deep.equal([]);
    expect(absent(workloadOf('webhook'))).to.deep.equal([]);
  });

  it('reads the Leases of all processes that run in one Deployment', () => {
    expect(leaderless('all', 'agent')).to.deep.equal(names.filter((name) => name !== 'holdfast-capacity'));
    expect(leaderless('all', 'agent', 'capacity')).to.deep.equal(names);
  });
});
