import { expect } from 'chai';
import { CLAIM_REFERENCE_KEY, DEFAULT_NETWORK_ANNOTATION } from '../api/names.js';
import { vmReference, claimOfIpamExtensions } from '../test/objects/workload-objects.js';
import { type RawPod, makeClaim, makeLauncherPod, makeVmi } from '../test/objects/kubevirt-objects.js';
import {
  CLUSTER,
  VM1,
  type ReviewedCluster,
  clusterViewOf,
  reviewCreate,
  reviewUpdate,
} from '../test/objects/pod-review.js';
import { readPod } from './reviewed-pod.js';
import { reviewPod } from './pod-mutation.js';

/** The claim of vm1's pod network, which is named `default`. */
const OWNER = vmReference('vm1-vm-uid', 'vm1');
const POD_CLAIM = claimOfIpamExtensions({ name: 'vm1.default', owner: OWNER, network: 'tenant-net' });

function launcherWith(reference: string, vmi = VM1): RawPod {
  const pod = makeLauncherPod(vmi);
  const element = { name: 'default', namespace: 'ovn-kubernetes', mac: '02:00:00:00:00:01' };
  pod.metadata.annotations[DEFAULT_NETWORK_ANNOTATION] = JSON.stringify([
    { ...element, [CLAIM_REFERENCE_KEY]: reference },
  ]);
  return pod;
}

function clusterWith(...claims: ReviewedCluster['claims'] & object): ReviewedCluster {
  return { ...CLUSTER, claims: [...CLUSTER.claims, ...claims] };
}

describe('the default network of a launcher', () => {
  it('may refer to the claim that kubevirt/ipam-extensions created for the pod network of its VM', () => {
    const verdict = reviewCreate(clusterWith(POD_CLAIM), undefined, launcherWith('vm1.default'));
    expect(verdict).to.deep.include({ allowed: true });
  });

  it('may refer to that claim before it exists, and the claim is read live', () => {
    const verdict = reviewCreate(CLUSTER, undefined, launcherWith('vm1.default'));
    expect(verdict).to.deep.include({ allowed: true });
    expect(verdict.rechecks).to.deep.include({ kind: 'claim', key: 'vm1.default' });
  });

  it('may refer to an existing claim whose name only kubevirt/ipam-extensions gives', () => {
    const vmi = { ...VM1, spec: { ...VM1.spec, networks: [{ name: 'Pod_Net', pod: {} }] } };
    const claim = claimOfIpamExtensions({ name: 'vm1.pod.net', owner: OWNER, network: 'tenant-net' });
    const pod = launcherWith('vm1.pod.net', vmi);
    expect(reviewCreate({ ...clusterWith(claim), vmis: [vmi] }, undefined, pod).allowed).to.be.true;
    // before it exists, the name could be that of VM vm1.pod
    expect(reviewCreate({ ...CLUSTER, vmis: [vmi] }, undefined, pod).allowed).to.be.false;
  });

  it('may change to that claim while the pod runs, but not to another one', () => {
    const before = launcherWith('vm1.default');
    const given = clusterWith(POD_CLAIM);
    expect(reviewUpdate(given, makeLauncherPod(VM1), before).allowed).to.be.true;
    expect(reviewUpdate(given, before, launcherWith('vm2.default'))).to.deep.include({ check: 'default-network' });
  });

  const refusals: { name: string; reference: string; given: ReviewedCluster; part: string; pod?: RawPod }[] = [
    {
      name: 'the claim of another VM',
      reference: 'vm2.default',
      given: clusterWith(makeClaim('vm2', 'default', { network: 'tenant-net' })),
      part: 'expected "vm1.default"',
    },
    {
      name: 'a claim of its VM for a secondary network',
      reference: 'vm1.data',
      given: CLUSTER,
      part: 'expected "vm1.default"',
    },
    {
      name: 'a claim of the right name that belongs to another VM',
      reference: 'vm1.default',
      given: clusterWith(makeClaim('vm1', 'default', { ownerUid: 'other-uid' })),
      part: 'belongs to another VirtualMachine vm1',
    },
    {
      name: 'a claim of the right name without an owner',
      reference: 'vm1.default',
      given: clusterWith(makeClaim('vm1', 'default', { ownerUid: null })),
      part: 'has no owner',
    },
    {
      name: 'a claim if its VM has no pod network',
      reference: 'vm1.default',
      given: { ...clusterWith(POD_CLAIM), vmis: [{ ...VM1, spec: { networks: VM1.spec!.networks!.slice(1) } }] },
      part: 'has no pod network',
    },
    {
      name: 'a claim if its VMI is gone',
      reference: 'vm1.default',
      given: { ...clusterWith(POD_CLAIM), vmis: [] },
      part: 'which does not exist',
    },
    {
      name: 'a claim of the VM that its VMI falsely names',
      reference: 'vm1.default',
      given: { ...clusterWith(POD_CLAIM), vmis: [makeVmi('evil', { data: 'blue' }, { vm: 'vm1-vm-uid' })] },
      pod: launcherWith('vm1.default', makeVmi('evil', { data: 'blue' }, { vm: 'vm1-vm-uid' })),
      part: 'VirtualMachine vms/evil',
    },
  ];
  for (const { name, reference, given, part, pod = launcherWith(reference) } of refusals) {
    it(`may not refer to ${name}`, () => {
      const verdict = reviewCreate(given, undefined, pod);
      expect(verdict).to.deep.include({ allowed: false, check: 'default-network' });
      if (!verdict.allowed) expect(verdict.reason).to.include(part).and.include(`"${reference}"`);
    });
  }

  it('may not refer to a claim if it is unknown which user creates launchers', () => {
    const pod = readPod(launcherWith('vm1.default'), 'object');
    const requester = { username: 'anyone', kubevirt: { problem: 'the ConfigMap is missing' } };
    const review = { operation: 'CREATE' as const, namespace: 'vms', pod, requester };
    const verdict = reviewPod(review, clusterViewOf(clusterWith(POD_CLAIM)));
    expect(verdict).to.deep.include({ allowed: false, check: 'default-network' });
    if (!verdict.allowed) expect(verdict.reason).to.include('the ConfigMap is missing');
  });
});
