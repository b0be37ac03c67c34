import { expect } from 'chai';
import { claimName } from '../api/ipam-claim.js';
import { podInterfaceName } from '../api/pod-interface.js';
import { makeClaim, makeLauncherPod, makeNad, makeVmi, networksValue } from '../test/kubevirt-objects.js';
import {
  CLUSTER,
  DATA,
  VM1,
  elementWith,
  referencesAfter,
  reviewCreate,
  type ReviewedCluster,
} from '../test/pod-review.js';
import type { Recheck } from '../cluster/cluster-view.js';

describe('a launcher pod that is created', () => {
  const pointed = networksValue(VM1, { data: 'vm1.data' });

  it('gets one operation that replaces one annotation', () => {
    const verdict = reviewCreate(CLUSTER);
    expect(verdict.allowed && verdict.patch).to.deep.equal([
      { op: 'replace', path: '/metadata/annotations/k8s.v1.cni.cncf.io~1networks', value: pointed },
    ]);
  });

  it('gets no patch where it is right already', () => {
    expect(reviewCreate(CLUSTER, pointed)).to.deep.equal({ allowed: true, patch: [], warnings: [], doubts: [] });
  });

  it('has a claim for each of two interfaces on one NAD', () => {
    const vmi = makeVmi('vm1', { one: 'blue', two: 'blue' });
    const claims = [makeClaim('vm1', 'two'), makeClaim('vm1', 'one')];
    const value = networksValue(vmi);
    expect(referencesAfter(reviewCreate({ ...CLUSTER, vmis: [vmi], claims }, value), value)).to.deep.equal([
      'vm1.one',
      'vm1.two',
    ]);
  });

  it('has claims of odd names for VMs and networks of odd names', () => {
    const vmi = makeVmi('vm1', { Data_Net: 'blue' });
    const value = networksValue(vmi);
    const verdict = reviewCreate({ ...CLUSTER, vmis: [vmi], claims: [] }, value);
    expect(referencesAfter(verdict, value)).to.deep.equal([claimName('vm1', 'Data_Net')]);
  });

  it('may use a NAD of another namespace that gives the network another name', () => {
    const vmi = makeVmi('vm1', { data: 'shared/blue-nad' });
    const nad = makeNad('blue-nad', { network: 'blue' });
    nad.metadata.namespace = 'shared';
    const value = networksValue(vmi);
    const verdict = reviewCreate({ ...CLUSTER, vmis: [vmi], nads: [nad] }, value);
    expect(referencesAfter(verdict, value)).to.deep.equal(['vm1.data']);
  });

  it('of an old KubeVirt is matched by the ordinals of its interfaces', () => {
    const vmi = makeVmi('vm1', { one: 'blue', two: 'blue' });
    const value = '[{"name":"blue","interface":"net2"},{"name":"blue","interface":"net1"}]';
    expect(referencesAfter(reviewCreate({ ...CLUSTER, vmis: [vmi], claims: [] }, value), value)).to.deep.equal([
      'vm1.two',
      'vm1.one',
    ]);
  });

  it('is matched by position where an element names no interface, and the comma form becomes JSON', () => {
    const vmi = makeVmi('vm1', { one: 'blue', two: 'blue' });
    const verdict = reviewCreate({ ...CLUSTER, vmis: [vmi], claims: [] }, 'blue,vms/blue');
    expect(referencesAfter(verdict, 'blue,vms/blue')).to.deep.equal(['vm1.one', 'vm1.two']);
  });

  it("does not take a binding's own element for that of the interface", () => {
    const value = JSON.stringify([{ name: 'blue' }, { name: 'blue', interface: DATA }]);
    expect(referencesAfter(reviewCreate({ ...CLUSTER, claims: [] }, value), value)).to.deep.equal([
      undefined,
      'vm1.data',
    ]);
  });

  it('is not matched by NAD alone', () => {
    const value = JSON.stringify([{ name: 'blue', interface: 'somebodys' }]);
    expect(referencesAfter(reviewCreate(CLUSTER, value), value)).to.deep.equal([undefined]);
  });

  it('is not matched by interface alone', () => {
    const value = JSON.stringify([{ name: 'green', interface: DATA }]);
    const verdict = reviewCreate({ ...CLUSTER, nads: [makeNad('blue'), makeNad('green')], claims: [] }, value);
    expect(referencesAfter(verdict, value)).to.deep.equal([undefined]);
    expect(verdict.doubts).to.deep.include({ kind: 'vmi', key: 'vm1' });
  });

  it('keeps its claim on the NAD that its interface had before, while the VM names another already', () => {
    const value = JSON.stringify([{ name: 'blue', interface: DATA }]);
    const given = { ...CLUSTER, vmis: [makeVmi('vm1', { data: 'green' })] };
    expect(referencesAfter(reviewCreate(given, value), value)).to.deep.equal(['vm1.data']);
  });

  it('goes on with the other networks where one NAD is missing, and warns', () => {
    const vmi = makeVmi('vm1', { data: 'blue', lost: 'nowhere' });
    const value = networksValue(vmi);
    const verdict = reviewCreate({ ...CLUSTER, vmis: [vmi] }, value);
    expect(referencesAfter(verdict, value)).to.deep.equal(['vm1.data', undefined]);
    expect(verdict.allowed && verdict.warnings).to.deep.equal([
      'network "lost" gets no persistent addresses: NetworkAttachmentDefinition vms/nowhere does not exist: create it',
    ]);
  });

  it('warns of a broken NAD, naming the field', () => {
    const verdict = reviewCreate({
      ...CLUSTER,
      claims: [],
      nads: [makeNad('blue', { config: '{"allowPersistentIPs":"yes"}' })],
    });
    expect(verdict.allowed && verdict.warnings[0])
      .to.include('vms/blue')
      .and.to.include('spec.config.allowPersistentIPs');
  });

  it('may ask for addresses where it has no claim', () => {
    const value = elementWith({ ips: ['10.0.0.9/24'] });
    expect(referencesAfter(reviewCreate({ ...CLUSTER, claims: [], enabled: false }, value), value)).to.deep.equal([
      undefined,
    ]);
  });

  it('is left alone without networks, or without the label', () => {
    const bare = makeLauncherPod(VM1);
    bare.metadata.annotations = {};
    const other = makeLauncherPod(VM1, 'broken,,');
    other.metadata.labels = { app: 'web' };
    for (const pod of [bare, other])
      expect(reviewCreate({}, undefined, pod)).to.deep.include({ allowed: true, patch: [] });
  });

  const doubts: { name: string; given: ReviewedCluster; networks?: string; expect: Recheck[] }[] = [
    { name: 'of nothing where all is seen', given: CLUSTER, expect: [] },
    { name: 'of a VMI that is not seen', given: {}, expect: [{ kind: 'vmi', key: 'vm1' }] },
    {
      name: 'of a NAD that is not seen',
      given: { ...CLUSTER, nads: [], claims: [] },
      expect: [{ kind: 'network', key: 'vms/blue' }],
    },
    {
      name: 'of a claim that is not seen',
      given: { ...CLUSTER, claims: [] },
      expect: [{ kind: 'claim', key: 'vm1.data' }],
    },
    {
      name: 'of a claim that is in the way',
      given: { ...CLUSTER, claims: [makeClaim('vm1', 'data', { ownerUid: 'other' })] },
      expect: [{ kind: 'claim', key: 'vm1.data' }],
    },
    {
      name: 'of a VMI that lacks a network which is being plugged in',
      given: CLUSTER,
      networks: elementWith({ interface: podInterfaceName('new') }),
      expect: [{ kind: 'vmi', key: 'vm1' }],
    },
    {
      name: 'of nothing for an interface that is not of KubeVirt',
      given: CLUSTER,
      networks: elementWith({ interface: 'mine' }),
      expect: [],
    },
  ];
  for (const { name, given, networks: value, expect: expected } of doubts) {
    it(`leaves a doubt ${name}`, () => {
      expect(reviewCreate(given, value).doubts).to.deep.equal(expected);
    });
  }
});
