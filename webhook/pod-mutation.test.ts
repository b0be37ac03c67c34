import { expect } from 'chai';
import { claimName } from '../api/ipam-claim.js';
import { MAX_NAD_CONFIG_LENGTH, MAX_NAD_PLUGINS } from '../api/limits.js';
import { podInterfaceName } from '../api/pod.js';
import { makeClaim, makeLauncherPod, makeNad, makeVmi, networksValue } from '../test/objects/kubevirt-objects.js';
import {
  CLUSTER,
  DATA,
  VM1,
  elementWith,
  referencesAfter,
  reviewCreate,
  type ReviewedCluster,
} from '../test/objects/pod-review.js';
import type { Recheck } from '../cluster/cluster-view.js';

describe('a launcher pod that is created', () => {
  const pointed = networksValue(VM1, { data: 'vm1.data' });

  it('gets one operation that replaces one annotation', () => {
    const verdict = reviewCreate(CLUSTER);
    expect(verdict.allowed && verdict.patch).to.deep.equal([
      { op: 'replace', path: '/metadata/annotations/k8s.v1.cni.cncf.io~1networks', value: pointed },
    ]);
  });

  it('gets no patch if its references are right already', () => {
    expect(reviewCreate(CLUSTER, pointed)).to.deep.equal({ allowed: true, patch: [], warnings: [], rechecks: [] });
  });

  it('gets a claim for each of two interfaces on one NAD', () => {
    const vmi = makeVmi('vm1', { one: 'blue', two: 'blue' });
    const claims = [makeClaim('vm1', 'two'), makeClaim('vm1', 'one')];
    const value = networksValue(vmi);
    expect(referencesAfter(reviewCreate({ ...CLUSTER, vmis: [vmi], claims }, value), value)).to.deep.equal([
      'vm1.one',
      'vm1.two',
    ]);
  });

  it('gets the hashed claim names of VMs and networks with unusual names', () => {
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

  it('is matched by ordinal interface names if an old KubeVirt created it', () => {
    const vmi = makeVmi('vm1', { one: 'blue', two: 'blue' });
    const value = '[{"name":"blue","interface":"net2"},{"name":"blue","interface":"net1"}]';
    expect(referencesAfter(reviewCreate({ ...CLUSTER, vmis: [vmi], claims: [] }, value), value)).to.deep.equal([
      'vm1.two',
      'vm1.one',
    ]);
  });

  it('is matched by position if an element names no interface, and the comma form becomes JSON', () => {
    const vmi = makeVmi('vm1', { one: 'blue', two: 'blue' });
    const verdict = reviewCreate({ ...CLUSTER, vmis: [vmi], claims: [] }, 'blue,vms/blue');
    expect(referencesAfter(verdict, 'blue,vms/blue')).to.deep.equal(['vm1.one', 'vm1.two']);
  });

  it('is not matched by the element of a network binding', () => {
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
    expect(verdict.rechecks).to.deep.include({ kind: 'vmi', key: 'vm1' });
  });

  it('keeps its claim on the former NAD of its interface while the VM names another NAD already', () => {
    const value = JSON.stringify([{ name: 'blue', interface: DATA }]);
    const given = { ...CLUSTER, vmis: [makeVmi('vm1', { data: 'green' })] };
    expect(referencesAfter(reviewCreate(given, value), value)).to.deep.equal(['vm1.data']);
  });

  it('gets the other references and a warning if one NAD is missing', () => {
    const vmi = makeVmi('vm1', { data: 'blue', lost: 'nowhere' });
    const value = networksValue(vmi);
    const verdict = reviewCreate({ ...CLUSTER, vmis: [vmi] }, value);
    expect(referencesAfter(verdict, value)).to.deep.equal(['vm1.data', undefined]);
    expect(verdict.allowed && verdict.warnings).to.deep.equal([
      'network "lost" gets no persistent addresses: NetworkAttachmentDefinition vms/nowhere does not exist: create it',
    ]);
  });

  it('gets a warning that names the field of an invalid NAD', () => {
    const verdict = reviewCreate({
      ...CLUSTER,
      claims: [],
      nads: [makeNad('blue', { config: '{"allowPersistentIPs":"yes"}' })],
    });
    expect(verdict.allowed && verdict.warnings[0])
      .to.include('vms/blue')
      .and.to.include('spec.config.allowPersistentIPs');
  });

  for (const { name, config } of [
    { name: 'length', config: { padding: 'x'.repeat(MAX_NAD_CONFIG_LENGTH) } },
    { name: 'number of plugins', config: { plugins: Array.from({ length: MAX_NAD_PLUGINS + 1 }, () => ({})) } },
  ]) {
    it(`is admitted with a warning on a NAD over the limit of its ${name}, because networks of other IPAMs must work`, () => {
      const nads = [makeNad('blue', { config: JSON.stringify({ name: 'blue', allowPersistentIPs: true, ...config }) })];
      const value = networksValue(VM1);
      const verdict = reviewCreate({ ...CLUSTER, claims: [], nads }, value);
      expect(referencesAfter(verdict, value)).to.deep.equal([undefined]);
      expect(verdict.allowed && verdict.warnings[0]).to.match(
        /gets no persistent addresses: .* cannot be used: .* at most/,
      );
      // a claim that exists is used, so the addresses stay
      expect(referencesAfter(reviewCreate({ ...CLUSTER, nads }, value), value)).to.deep.equal(['vm1.data']);
    });
  }

  it('may request addresses on an interface without a claim', () => {
    const value = elementWith({ ips: ['10.0.0.9/24'] });
    expect(referencesAfter(reviewCreate({ ...CLUSTER, claims: [], enabled: false }, value), value)).to.deep.equal([
      undefined,
    ]);
  });

  it('is not changed without networks or without the label', () => {
    const bare = makeLauncherPod(VM1);
    bare.metadata.annotations = {};
    const other = makeLauncherPod(VM1, 'broken,,');
    other.metadata.labels = { app: 'web' };
    for (const pod of [bare, other])
      expect(reviewCreate({}, undefined, pod)).to.deep.include({ allowed: true, patch: [] });
  });

  const rechecks: { name: string; given: ReviewedCluster; networks?: string; expect: Recheck[] }[] = [
    { name: 'of nothing if all objects are cached', given: CLUSTER, expect: [] },
    { name: 'of a VMI that is not cached', given: {}, expect: [{ kind: 'vmi', key: 'vm1' }] },
    {
      name: 'of a NAD that is not cached',
      given: { ...CLUSTER, nads: [], claims: [] },
      expect: [{ kind: 'network', key: 'vms/blue' }],
    },
    { name: 'of an uncached claim', given: { ...CLUSTER, claims: [] }, expect: [{ kind: 'claim', key: 'vm1.data' }] },
    {
      name: 'of a claim that would refuse the pod',
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
      name: 'of nothing for an interface that KubeVirt did not name',
      given: CLUSTER,
      networks: elementWith({ interface: 'mine' }),
      expect: [],
    },
  ];
  for (const { name, given, networks: value, expect: expected } of rechecks) {
    it(`requests a live read ${name}`, () => {
      expect(reviewCreate(given, value).rechecks).to.deep.equal(expected);
    });
  }
});
