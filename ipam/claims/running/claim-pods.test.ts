import { expect } from 'chai';
import type { Pod } from '../../../api/pod.js';
import { CLAIM_INDEXES } from '../../../cluster/watch-specs.js';
import { Cache } from '../../../kube/informers/cache.js';
import { TestInformer } from '../../../kube/testing/test-informer.js';
import { claim, claimOfIpamExtensions, launcher, vmiReference } from '../../../test/objects/workload-objects.js';
import { CLAIM_PODS, ClaimPods, transformClaimPod } from './claim-pods.js';

const NETWORKS = 'k8s.v1.cni.cncf.io/networks';

function pod(name: string, networks?: string): Pod {
  return {
    metadata: {
      name,
      namespace: 'vms',
      uid: `${name}-uid`,
      resourceVersion: '7',
      labels: { app: 'x' },
      creationTimestamp: '2026-01-01T00:00:00Z',
      annotations: { other: 'y', ...(networks !== undefined && { [NETWORKS]: networks }) },
    },
    spec: { nodeName: 'node1' },
    status: { phase: 'Running' },
  };
}

const element = (claim: string) => JSON.stringify({ name: 'blue', 'ipam-claim-reference': claim });
const reference = (claim: string) => `[${element(claim)}]`;

describe('a pod in the cache of the IPAM', () => {
  it('has only its identity if it uses no claim', () => {
    expect(transformClaimPod(pod('web'))).to.deep.equal({
      metadata: { name: 'web', namespace: 'vms', uid: 'web-uid', resourceVersion: '7' },
      isTerminal: false,
      claims: [],
    });
  });

  it('shares one empty list of claims with other pods', () => {
    expect(transformClaimPod(pod('a')).claims).to.equal(transformClaimPod(pod('b', 'blue')).claims);
  });

  const broken = ['[{', '[{"name": 3}]', 'a b/c', '[{"name":"blue","IPAM-claim-reference":"c"}]'];
  for (const value of broken) {
    it(`references no claim if its annotation is ${value}`, () => {
      expect(transformClaimPod(pod('web', value)).claims).to.deep.equal([]);
    });
  }

  it('names each claim once, and has its node and addresses', () => {
    const raw = pod('web', `[${element('c')},${element('c')}]`);
    raw.metadata.annotations!['k8s.v1.cni.cncf.io/network-status'] =
      '[{"name":"vms/blue","interface":"net1","ips":["10.0.0.5",7]},{"name":"vms/red","ips":null}]';
    expect(transformClaimPod(raw)).to.deep.equal({
      metadata: {
        ...{ name: 'web', namespace: 'vms', uid: 'web-uid', resourceVersion: '7' },
        creationTimestamp: '2026-01-01T00:00:00Z',
      },
      isTerminal: false,
      claims: ['c'],
      isRunning: true,
      hasNode: true,
      interfaces: '[{"nad":"vms/blue","name":"net1","ips":["10.0.0.5"]}]',
    });
  });

  it('may have no node', () => {
    expect(transformClaimPod({ ...pod('web', reference('c')), spec: {} })).not.to.have.property('hasNode');
  });
});

describe('ClaimPods', () => {
  const claims = new Cache(CLAIM_INDEXES);
  claims.set(claim());
  claims.set(claim({ name: 'vm1.extra', vmNetwork: 'extra' }));
  claims.set(claim({ name: 'vm2.data', owner: { ...vmiReference('u2', 'vm2') } }));

  function podsOfClaim(raw: Pod, ...given: Parameters<typeof claim>): string[] {
    const informer = new TestInformer(CLAIM_PODS.indexes);
    informer.set(transformClaimPod(raw));
    return new ClaimPods(informer, claims).podsOf(claim(...given)).map(({ metadata }) => metadata.name);
  }

  it('finds the pods that reference a claim', () => {
    expect(podsOfClaim(pod('web', reference('vm1.data')))).to.deep.equal(['web']);
    expect(podsOfClaim(pod('web', reference('vm1.extra')))).to.deep.equal([]);
  });

  it("finds a launcher of the claim's VM whose reference was removed, and lists each launcher once", () => {
    expect(podsOfClaim(launcher([{ nad: 'blue' }]))).to.have.length(1);
    expect(podsOfClaim(launcher([{ nad: 'blue', claim: 'vm1.data' }]))).to.have.length(1);
    expect(podsOfClaim(launcher('[{'))).to.have.length(1);
  });

  it('finds no launcher of another VM or namespace, and none that has ended', () => {
    expect(podsOfClaim(launcher([], { vmiName: 'vm2' }))).to.deep.equal([]);
    const elsewhere = launcher([{ nad: 'blue', claim: 'vm1.data' }]);
    elsewhere.metadata.namespace = 'others';
    expect(podsOfClaim(elsewhere)).to.deep.equal([]);
    for (const phase of ['Succeeded', 'Failed']) {
      expect(podsOfClaim(launcher([{ nad: 'blue', claim: 'vm1.data' }], { phase }))).to.deep.equal([]);
    }
  });

  it('finds the pods of a claim whose owner is no KubeVirt object only by their reference', () => {
    const owner = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'vm1', uid: 'd', controller: true };
    expect(podsOfClaim(launcher([]), { owner })).to.deep.equal([]);
    expect(podsOfClaim(pod('web', reference('vm1.data')), { owner })).to.deep.equal(['web']);
  });

  it('reports the claims that a pod references or referenced, and those of its VM', () => {
    const informer = new TestInformer(CLAIM_PODS.indexes);
    const pods = new ClaimPods(informer, claims);
    const reported: string[] = [];
    pods.onChange((key) => reported.push(key));
    informer.set(transformClaimPod(pod('web', reference('a'))));
    informer.set(transformClaimPod(pod('web', reference('b'))));
    informer.delete('vms/web');
    expect(reported.splice(0)).to.deep.equal(['vms/a', 'vms/a', 'vms/b', 'vms/b']);
    informer.set(transformClaimPod(launcher([{ nad: 'blue', claim: 'vm1.data' }])));
    expect(reported).to.deep.equal(['vms/vm1.data', 'vms/vm1.extra']);
  });

  it('reports nothing for pods without claims and for changes that affect no claim', () => {
    const informer = new TestInformer(CLAIM_PODS.indexes);
    const reported: string[] = [];
    new ClaimPods(informer, new Cache(CLAIM_INDEXES)).onChange((key) => reported.push(key));
    informer.set(transformClaimPod(pod('plain')));
    informer.delete('vms/plain');
    informer.set(transformClaimPod(pod('web', reference('a'))));
    const relabelled = pod('web', reference('a'));
    relabelled.metadata.labels = {};
    informer.set(transformClaimPod(relabelled));
    expect(reported).to.deep.equal(['vms/a']);
    informer.set(transformClaimPod({ ...pod('web', reference('a')), status: { phase: 'Succeeded' } }));
    expect(reported).to.deep.equal(['vms/a', 'vms/a']);
  });

  it('finds the pods of a claim that ipam-extensions created', () => {
    const informer = new TestInformer(CLAIM_PODS.indexes);
    informer.set(transformClaimPod(launcher([{ nad: 'blue', claim: 'vm1.data' }])));
    const claimPods = new ClaimPods(informer, claims);
    expect(claimPods.podsOf(claimOfIpamExtensions())).to.have.length(1);
    informer.set(transformClaimPod(launcher([{ nad: 'blue' }])));
    expect(claimPods.podsOf(claimOfIpamExtensions({ owner: null }))).to.have.length(1);
    expect(claimPods.podsOf(claimOfIpamExtensions({ owner: null, label: 'vm2' }))).to.have.length(0);
  });
});
