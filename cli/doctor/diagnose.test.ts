import { expect } from 'chai';
import type { AddressPool } from '../../api/address-pool.js';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import { HEALTHY, NOW, ago, crdOf, unreadyPod, workloadOf } from '../testing/healthy-cluster.js';
import { textOf } from '../terminal.js';
import { neededPolicies } from './check-admission.js';
import { diagnose } from './diagnose.js';
import type { ObservedCluster } from './observe.js';
import { reportOf } from './finding.js';

const YEAR_MS = 365 * 24 * 3_600_000;
const without = <T extends { metadata: { name: string } }>(objects: readonly T[] | undefined, name: string) =>
  (objects ?? []).filter(({ metadata }) => metadata.name !== name);
const withWebhook = (clientConfig: object) => {
  const [first, ...rest] = HEALTHY.configurations!;
  return [{ ...first!, webhooks: first!.webhooks!.map((webhook) => ({ ...webhook, clientConfig })) }, ...rest];
};
const poolWith = (type: string, status: 'True' | 'False', reason: string): AddressPool => ({
  metadata: { name: 'blue.lab' },
  spec: { network: 'blue', subnets: [] },
  status: {
    ...{ capacity: 0, leased: 0, heldByStopped: 0, cooling: 0, free: 0, reserved: 0 },
    conditions: [{ type, status, reason, message: 'what happened', lastTransitionTime: '' }],
  },
});
const nadWith = (ipam: object) => ({
  metadata: { namespace: 'lab', name: 'blue' },
  spec: { config: JSON.stringify({ cniVersion: '1.0.0', name: 'blue', type: 'bridge', ipam }) },
});
const leaseOf = (uid: string, age: number) => ({
  name: 'blue.10.0.0.5',
  owner: { kind: 'Pod', namespace: 'lab', name: 'gone', uid },
  createdAt: NOW - age,
});
const waiting: IPAMClaim = {
  metadata: { namespace: 'lab', name: 'vm1.data' },
  spec: { network: 'blue', interface: 'pod1' },
  status: {
    ips: [],
    conditions: [
      { type: 'IPsAllocated', status: 'False', reason: 'SubnetExhausted', message: 'full', lastTransitionTime: '' },
    ],
  },
};

/** An installation of only controller and webhook. */
const CONTROLLER_AND_WEBHOOK = ['controller', 'webhook'].map((name) => workloadOf(name));
const NEEDED = neededPolicies({ ...HEALTHY, workloads: CONTROLLER_AND_WEBHOOK }).map((name) => ({
  metadata: { name },
}));

interface Case {
  readonly name: string;
  readonly broken: Partial<ObservedCluster>;
  /** `severity check object: words of the problem`; empty: nothing. */
  readonly found: readonly string[];
}

const CASES: readonly Case[] = [
  { name: 'a healthy cluster', broken: {}, found: [] },
  {
    name: 'a kind that is missing',
    broken: { crds: without(HEALTHY.crds, 'addresspools.ipam.holdfast.dev') },
    found: ['error kinds CustomResourceDefinition addresspools.ipam.holdfast.dev: does not exist'],
  },
  {
    name: 'a kind that is older than the processes',
    broken: {
      crds: [
        ...without(HEALTHY.crds, 'addressblocks.ipam.holdfast.dev'),
        crdOf('addressblocks.ipam.holdfast.dev', ['spec.pool', 'spec.cidr', 'spec.node', 'status.release']),
      ],
    },
    found: ['error kinds CustomResourceDefinition addressblocks.ipam.holdfast.dev: it has no status.reason'],
  },
  {
    name: 'a process that is not installed',
    broken: { workloads: without(HEALTHY.workloads, 'holdfast-webhook') },
    found: ['error processes holdfast-webhook: no workload of the component webhook exists'],
  },
  {
    name: 'nothing about ipam and agents, their kinds and policies on a cluster with another IPAM',
    broken: {
      workloads: CONTROLLER_AND_WEBHOOK,
      crds: HEALTHY.crds!.filter(({ metadata }) => metadata.name.startsWith('ipamclaims.')),
      policies: NEEDED,
      policyBindings: NEEDED,
    },
    found: [],
  },
  {
    name: 'an agent that cannot install the CNI plugin',
    broken: {
      workloads: [...without(HEALTHY.workloads, 'holdfast-agent'), workloadOf('agent', '0.1.0', 1)],
      pods: [unreadyPod('agent', 'node-7')],
    },
    found: [
      'error processes DaemonSet holdfast-agents/holdfast-agent: 1 of 2 pods are ready: holdfast-agent-x on node node-7 is CrashLoopBackOff (cannot install the CNI plugin',
    ],
  },
  {
    name: 'a leader that is silent',
    broken: { leaders: [{ ...HEALTHY.leaders![1]!, spec: { holderIdentity: 'pod-x', renewTime: ago(61_000) } }] },
    found: ['error leaders Lease holdfast-system/holdfast-ipam: pod-x has not renewed it for 61 s'],
  },
  {
    name: 'versions that are too far apart',
    broken: { workloads: [...without(HEALTHY.workloads, 'holdfast-ipam'), workloadOf('ipam', '0.3.0')] },
    found: [
      'error versions holdfast-controller: runs 0.1.0, and another process runs 0.3.0',
      'error versions holdfast-webhook: runs 0.1.0',
      'error versions holdfast-agent: runs 0.1.0',
      'warning versions kubectl holdfast: is 0.1.0, and the processes run 0.3.0',
    ],
  },
  {
    name: 'a webhook without a CA',
    broken: { configurations: withWebhook({}) },
    found: ['error webhooks MutatingWebhookConfiguration holdfast-webhook: caBundle is empty'],
  },
  {
    name: 'a webhook whose CA has expired',
    broken: { now: NOW + 200 * YEAR_MS, leaders: [], nodeLeases: [] },
    found: [
      'error webhooks MutatingWebhookConfiguration holdfast-webhook: the CA in caBundle expired',
      'error webhooks ValidatingWebhookConfiguration holdfast-ipam: the CA in caBundle expired',
    ],
  },
  {
    name: 'a webhook without a backend',
    broken: { endpointSlices: HEALTHY.endpointSlices!.slice(1) },
    found: [
      'error webhooks MutatingWebhookConfiguration holdfast-webhook: its Service holdfast-system/holdfast-webhook has no ready pod',
    ],
  },
  {
    name: 'a webhook that the API server cannot call',
    broken: { trialCalls: [{ configuration: 'holdfast-ipam', error: 'failed calling webhook "x": x509: …' }] },
    found: ['error webhooks WebhookConfiguration holdfast-ipam: the API server cannot call it: failed calling webhook'],
  },
  {
    name: 'a policy that is missing',
    broken: { policies: without(HEALTHY.policies, 'holdfast-claim-guard') },
    found: ['error policies ValidatingAdmissionPolicy holdfast-claim-guard: does not exist'],
  },
  {
    name: 'parameters of the policies that are missing',
    broken: { parameters: null, servedNetworks: null },
    found: ['policies', 'served-networks'].map((name) => `error policies ConfigMap holdfast-${name}: does not exist`),
  },
  {
    name: 'a list of networks that ipam has not written',
    broken: { servedNetworks: {} },
    found: ['error policies ConfigMap holdfast-served-networks: is not complete'],
  },
  {
    name: 'a wrong namespace of KubeVirt',
    broken: { parameters: { kubevirtNamespace: 'elsewhere' } },
    found: [
      'error kubevirt ConfigMap holdfast-policies: kubevirtNamespace is "elsewhere", but KubeVirt kubevirt/kubevirt',
    ],
  },
  {
    name: 'a right that a process lacks',
    broken: { missingRights: [{ account: 'sa', verb: 'create', group: 'g', resource: 'things' }] },
    found: ['error rights sa: may not create things of g'],
  },
  {
    name: 'another CNI folder than that of Multus',
    broken: {
      multus: [
        {
          metadata: { name: 'kube-multus-ds' },
          spec: {
            template: {
              spec: {
                volumes: [
                  { name: 'cnibin', hostPath: { path: '/var/lib/rancher/k3s/data/cni/' } },
                  { name: 'cni', hostPath: { path: '/etc/cni/net.d' } },
                ],
              },
            },
          },
        },
      ],
    },
    found: [
      'warning cni-folder DaemonSet holdfast-agents/holdfast-agent: installs the CNI plugin into /opt/cni/bin, but Multus uses /var/lib/rancher/k3s/data/cni/',
    ],
  },
  {
    name: 'NADs that disagree',
    broken: { pools: [poolWith('NetworksAgree', 'False', 'NetworksDisagree')] },
    found: ['error pools AddressPool blue.lab: NetworksAgree is False (NetworksDisagree): what happened'],
  },
  {
    name: 'pools that overlap on one wire',
    broken: { pools: [poolWith('OverlapsOnWire', 'True', 'OtherAddressSpace')] },
    found: ['warning pools AddressPool blue.lab: OverlapsOnWire is True'],
  },
  {
    name: 'pools that are not probed because a host answers for many addresses',
    broken: { pools: [poolWith('ProbingStopped', 'True', 'ProxyARP')] },
    found: ['warning pools AddressPool blue.lab: ProbingStopped is True (ProxyARP): what happened'],
  },
  {
    name: 'nothing in the conditions of a pool that serves',
    broken: { pools: [poolWith('NetworksAgree', 'True', 'NetworksAgree')] },
    found: [],
  },
  {
    name: 'a NAD that misspells the IPAM',
    broken: { nads: [nadWith({ type: 'Holdfast' })] },
    found: ['error nads NetworkAttachmentDefinition lab/blue: spec.config'],
  },
  {
    name: 'a NAD that cannot be read',
    broken: { nads: [nadWith({ type: 'holdfast', subnets: 7 })] },
    found: ['error nads NetworkAttachmentDefinition lab/blue: spec.config'],
  },
  {
    name: 'a NAD without a pool',
    broken: { nads: [nadWith({ type: 'holdfast', subnets: [{ cidr: '10.0.0.0/24' }] })] },
    found: ['error nads NetworkAttachmentDefinition lab/blue: no AddressPool serves its network'],
  },
  { name: 'nothing about a NAD of another IPAM', broken: { nads: [nadWith({ type: 'dhcp' })] }, found: [] },
  {
    name: 'claims that wait',
    broken: { claims: [waiting] },
    found: ['error claims IPAMClaim lab/vm1.data: SubnetExhausted: full'],
  },
  {
    name: 'leases of owners that are gone for long, and no others',
    broken: { ownerlessLeases: [leaseOf('dead', 1_000), leaseOf('dead', YEAR_MS)] },
    found: ['warning leaks AddressLeases (1): their owners do not exist: blue.10.0.0.5 (Pod lab/gone)'],
  },
  {
    name: 'a clock that is ahead',
    broken: { nodeLeases: [{ metadata: { name: 'node-1' }, spec: { renewTime: ago(-40_000) } }] },
    found: ['error clocks Node node-1: its clock is about 40 s ahead of'],
  },
  {
    name: 'a clock that is behind',
    broken: { nodeLeases: [{ metadata: { name: 'node-1' }, spec: { renewTime: ago(80_000) } }] },
    found: ['error clocks Node node-1: its clock is about 80 s behind'],
  },
  {
    name: 'nothing about the clock of a node that is not ready',
    broken: { nodes: [], nodeLeases: [{ metadata: { name: 'node-1' }, spec: { renewTime: ago(80_000) } }] },
    found: [],
  },
];

describe('kubectl holdfast doctor', () => {
  it('shows few of the problems that tenants can make, and those of administrators first', () => {
    const named = (index: number) => ({ namespace: 'lab', name: `nad-${index}` });
    const nads = Array.from({ length: 500 }, (_, n) => ({ ...nadWith({ type: 'Holdfast' }), metadata: named(n) }));
    const own = poolWith('Ready', 'False', 'InvalidSpec');
    const derived = Array.from({ length: 500 }, (_, n) => {
      const annotations = { 'ipam.holdfast.dev/nad-namespace': 'lab' };
      return { ...own, metadata: { name: `a-${n}.lab`, annotations } };
    });
    const observed = { ...HEALTHY, nads, pools: [...derived, own] };
    const lines = reportOf(diagnose(observed, '0.1.0'), observed).lines(false).map(textOf);
    const heads = lines.filter((line) => /^(ERROR|NOT SHOWN) /.test(line));
    expect(heads).to.have.length(42).and.to.include('ERROR AddressPool blue.lab');
    expect(heads).to.include.members(
      ['481 more findings of the check pools', '480 more findings of the check nads'].map(
        (text) => `NOT SHOWN ${text} (all of them: -o json)`,
      ),
    );
  });

  for (const { name, broken, found } of CASES)
    it(`finds ${name}`, () => {
      const findings = diagnose({ ...HEALTHY, ...broken }, '0.1.0');
      const texts = findings.map(
        ({ severity, check, object, problem }) => `${severity} ${check} ${object}: ${problem}`,
      );
      expect(texts).to.have.length(found.length, texts.join('\n'));
      for (const [index, text] of found.entries()) {
        const [head = '', words = ''] = text.split(/: (.*)/);
        expect(texts[index]).to.include(head).and.to.include(words);
        expect(findings[index]?.remedy).to.match(/\w/);
      }
    });

  it('finds nothing in what the user may not read, and says what that is', () => {
    const blind = Object.fromEntries(Object.keys(HEALTHY).map((key) => [key, undefined])) as unknown as ObservedCluster;
    const findings = diagnose({ ...blind, trialCalls: [], refused: [] }, '0.1.0');
    expect(findings).to.deep.equal([]);
    const { lines } = reportOf(findings, { refused: ['user "jane" may not list pods', 'another'] });
    expect(lines(false).map(textOf)).to.deep.equal([
      'NOT CHECKED user "jane" may not list pods, and 1 more thing (all of them: -o json)',
      'nothing is wrong with what was checked',
    ]);
  });
});
