import { expect } from 'chai';
import type { Event } from '../../kube/events.js';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import type { Condition } from '../../api/meta.js';
import { CLAIM_NAD, PERSISTENT_IPS_DISABLED, PERSISTENT_IPS_LABEL } from '../../api/names.js';
import { HEALTHY, workloadOf } from '../testing/healthy-cluster.js';
import { textOf } from '../terminal.js';
import { diagnose, diagnosis, isUnchecked } from './diagnose.js';
import { type Finding, reportOf } from './finding.js';
import type { ObservedCluster } from './observe.js';

describe('what the doctor finds about VMs', () => {
  it('finds by its events a VM whose owner may not read NADs', () => {
    const event = {
      metadata: { namespace: 'lab', name: 'e1' },
      ...{
        reason: 'NetworkAttachmentNotFound',
        message: 'Network "data": NetworkAttachmentDefinition lab/other does not exist: create it',
        type: 'Warning',
      },
      involvedObject: { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine', namespace: 'lab', name: 'vm1' },
    } as Event;
    const owner = { nads: undefined, claims: [], vms: [vm1('other')], events: [event], onlyNamespace: 'lab' };
    const [found] = diagnose({ ...HEALTHY, ...owner }, '0.1.0');
    expect(found).to.include({ severity: 'error', object: 'VirtualMachine lab/vm1' });
    expect(found?.problem).to.include('lab/other does not exist: create it');
  });

  it('finds nothing about a derived pool in the three minutes of its deletion, unless leases keep it', () => {
    const condition = (type: string, status: 'True' | 'False', reason: string): Condition => {
      return { type, status, reason, message: 'what happened', lastTransitionTime: '' };
    };
    const problems = (reason: string) => {
      const conditions = [condition('Ready', 'False', 'Deleting'), condition('DeletionBlocked', 'True', reason)];
      const counts = { capacity: 0, leased: 0, heldByStopped: 0, cooling: 0, free: 0, reserved: 0 };
      const metadata = { name: 'blue.lab', deletionTimestamp: '2026-01-01T00:00:00Z' };
      const pool = { metadata, spec: { network: 'blue', subnets: [] }, status: { ...counts, conditions } };
      return diagnose({ ...HEALTHY, pools: [pool] }, '0.1.0').map(({ severity }) => severity);
    };
    expect(problems('AddsUnderWay')).to.deep.equal([]);
    expect(problems('Leased')).to.deep.equal(['warning']);
  });

  it('does not call it good that nothing could be checked', () => {
    const blind = Object.fromEntries(Object.keys(HEALTHY).map((key) => [key, undefined])) as unknown as ObservedCluster;
    const observed = { ...blind, trialCalls: [], refused: ['no'] };
    expect(isUnchecked(observed)).to.equal(true);
    expect(isUnchecked({ ...observed, claims: [], onlyNamespace: 'lab' })).to.equal(false);
    expect(reportOf([], observed, true).data).to.include({ checked: false, healthy: false });
    expect(textOf(reportOf([], observed, true).lines(false).at(-1) ?? '')).to.match(/^nothing could be checked/);
  });

  const vm1 = (networkName = 'blue') => ({
    metadata: { namespace: 'lab', name: 'vm1', uid: 'u1', creationTimestamp: '2020-01-01T00:00:00Z' },
    spec: { template: { spec: { networks: [{ name: 'data', multus: { networkName } }] } } },
  });
  const persistent = {
    metadata: { namespace: 'lab', name: 'blue' },
    spec: { config: '{"name": "blue", "allowPersistentIPs": true}' },
  };
  const unanswered: IPAMClaim = {
    metadata: {
      ...{ namespace: 'lab', name: 'vm1.data', creationTimestamp: '2020-01-01T00:00:00Z' },
      annotations: { [CLAIM_NAD]: 'lab/blue' },
    },
    spec: { network: 'blue', interface: 'pod1' },
  };
  const delegating = (type: string) => ({
    metadata: { namespace: 'lab', name: 'blue' },
    spec: { config: JSON.stringify({ name: 'blue', type: 'bridge', allowPersistentIPs: true, ipam: { type } }) },
  });

  it('finds nothing about an unanswered claim on a NAD of another IPAM, without IPAM, or that is not read', () => {
    for (const nads of [[delegating('other')], [persistent], [], undefined])
      expect(diagnose({ ...HEALTHY, claims: [unanswered], nads, vms: [vm1()] }, '0.1.0')).to.satisfy(
        (found: Finding[]) => found.every(({ problem }) => !/answered|given/.test(problem)),
      );
  });

  it('says that no event tells why a VM has no claim only if the events were read', () => {
    const observed = { ...HEALTHY, vms: [vm1()], nads: [persistent], events: [], onlyNamespace: 'lab' };
    const [found] = diagnose(observed, '0.1.0');
    expect(found?.problem).to.equal('network "data": it has no IPAMClaim, and no event says why');
  });

  it('is found in steps of one VM or claim each, between which the web page answers', () => {
    const observed = { ...HEALTHY, vms: Array.from({ length: 50 }, () => vm1()), claims: [unanswered] };
    expect([...diagnosis(observed, '0.1.0')]).to.have.length(51);
  });

  it('finds nothing about VMs of a namespace that is opted out, or that are being deleted', () => {
    const labels = { [PERSISTENT_IPS_LABEL]: PERSISTENT_IPS_DISABLED };
    const optedOut = { vms: [vm1(), vm1('other')], namespaces: [{ metadata: { name: 'lab', labels } }] };
    const { metadata, spec } = vm1();
    const deleted = { vms: [{ metadata: { ...metadata, deletionTimestamp: '2026-01-01T00:00:00Z' }, spec }] };
    for (const given of [optedOut, deleted])
      expect(diagnose({ ...HEALTHY, nads: [persistent], ...given }, '0.1.0')).to.deep.equal([]);
  });

  it('finds nothing about VMs of other namespaces than that of which the user may read claims', () => {
    const given = { vms: [vm1()], nads: [persistent], onlyNamespace: 'other', narrowed: ['claims'] as const };
    expect(diagnose({ ...HEALTHY, ...given }, '0.1.0')).to.deep.equal([]);
  });

  describe('with a closed feature gate', () => {
    const withArgument = (argument: string, listed?: string[]): Partial<ObservedCluster> => {
      const { metadata, spec } = workloadOf('controller');
      const [container] = spec!.template!.spec!.containers!;
      const template = { spec: { containers: [{ ...container!, args: ['controller', argument] }] } };
      const controller = { metadata, spec: { ...spec, template }, status: { readyReplicas: 2 } };
      const others = HEALTHY.workloads!.filter((workload) => workload.metadata.name !== metadata.name);
      const [kubevirt] = HEALTHY.kubevirts!;
      const configuration = { developerConfiguration: { featureGates: listed ?? [] } };
      const kubevirts = listed && [{ ...kubevirt!, spec: { configuration } }];
      return { workloads: [controller, ...others], kubevirts };
    };
    const FROM_KUBEVIRT = '--feature-gates-from-kubevirt';
    const findings = (argument: string, listed?: string[]) => {
      const vms = [vm1(), { ...vm1(), metadata: { ...vm1().metadata, name: 'vm2' } }];
      const observed = { ...HEALTHY, vms, nads: [persistent], ...withArgument(argument, listed) };
      return diagnose(observed, '0.1.0').map(({ severity, object }) => `${severity} ${object}`);
    };
    const CLOSED = ['warning Deployment holdfast-system/holdfast-controller'];

    it('finds the gate once instead of the VMs that have no claim', () => {
      expect(findings('--feature-gates=StickyMAC=false,PersistentIPs=false', [])).to.deep.equal(CLOSED);
      expect(findings(FROM_KUBEVIRT, ['LiveMigration'])).to.deep.equal(CLOSED);
    });

    it('finds VMs without a claim if the gate is open, and warns of them if nobody knows', () => {
      const VMS = ['VirtualMachine lab/vm1', 'VirtualMachine lab/vm2'];
      expect(findings(FROM_KUBEVIRT, ['PersistentIPs'])).to.deep.equal(VMS.map((vm) => `error ${vm}`));
      expect(findings('--feature-gates=NodeBlocks=true', [])).to.deep.equal(VMS.map((vm) => `error ${vm}`));
      expect(findings(FROM_KUBEVIRT)).to.deep.equal(VMS.map((vm) => `warning ${vm}`));
    });
  });

  for (const [name, given, words] of [
    ['whose NAD does not exist', { vms: [vm1('other')] }, 'NetworkAttachmentDefinition lab/other does not exist'],
    ['that has no claim', { vms: [vm1()], nads: [persistent] }, 'it has no IPAMClaim'],
    [
      'whose claim no IPAM has answered',
      { claims: [unanswered], nads: [delegating('holdfast')] },
      'no IPAM has given it addresses, nor said why',
    ],
  ] as [string, Partial<ObservedCluster>, string][]) {
    it(`finds a VM ${name}, also in one namespace only`, () => {
      for (const onlyNamespace of [undefined, 'lab']) {
        const observed = { ...HEALTHY, nads: [], claims: [], ...given, onlyNamespace };
        const found = diagnose(observed, '0.1.0').filter(({ problem }) => problem.includes(words));
        expect(found.map(({ severity }) => severity)).to.deep.equal(['error']);
        expect(found[0]?.remedy).to.match(/\w/);
      }
    });
  }

  it('finds claims in a namespace that does not exist, where nobody can release them', () => {
    const namespaces = [{ metadata: { name: 'lab' } }];
    const ofGone = ['a', 'b'].map((name) => ({ ...unanswered, metadata: { namespace: 'gone', name } }));
    const observed = { ...HEALTHY, claims: [...ofGone, { ...unanswered, metadata: { namespace: 'lab', name: 'c' } }] };
    const found = (given: Partial<ObservedCluster>) =>
      diagnose({ ...observed, ...given }, '0.1.0').filter(({ object }) => object.startsWith('Namespace '));
    const [finding, ...more] = found({ namespaces });
    expect(finding).to.include({ severity: 'error', check: 'claims', object: 'Namespace gone' });
    expect(finding?.problem).to.include('has 2 IPAMClaims');
    expect(finding?.remedy).to.include('kubectl create namespace gone');
    expect(more).to.deep.equal([]);
    // not all namespaces are known
    for (const given of [{ namespaces: undefined }, { namespaces, onlyNamespace: 'lab' }])
      expect(found(given)).to.deep.equal([]);
  });
});
