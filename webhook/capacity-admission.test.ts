import { expect } from 'chai';
import { systemClock } from '../kube/clock.js';
import { silentLogger } from '../kube/log.js';
import { PoolDirectory } from '../ipam/directory/directory.js';
import { type PoolGiven, adminPool, cacheOf, holdfastConfig, nad } from '../test/pool-objects.js';
import { clusterViewOf } from '../test/pod-review.js';
import { CapacityAdmission, findPublishedPool } from './capacity-admission.js';
import type { PodReviewer } from './pod-reviewer.js';

interface Response {
  uid: string;
  allowed: boolean;
  patch?: string;
  warnings?: string[];
}

const POD = {
  metadata: { generateName: 'pod-', annotations: { 'k8s.v1.cni.cncf.io/networks': 'blue' } },
  spec: { containers: [{ name: 'c' }] },
};

function admissionWith(given: { isClosed?: boolean; settle?: PodReviewer['settle'] } = {}) {
  const counts: string[] = [];
  const settle: PodReviewer['settle'] = (_namespace, decide) => Promise.resolve(decide(clusterViewOf({})));
  const admission = new CapacityAdmission({
    lookup: { settle: given.settle ?? settle },
    ...(!given.isClosed && {
      publishedPool: (namespace, key) => (key === `${namespace}/blue` ? 'blue' : undefined),
    }),
    log: silentLogger,
    metrics: { reviewed: (operation, result) => counts.push(`${operation} ${result}`) },
    clock: systemClock,
  });
  const answer = async (object: unknown, more: object = {}): Promise<Response> => {
    const resource = { group: '', version: 'v1', resource: 'pods' };
    const request = { uid: 'u1', operation: 'CREATE', namespace: 'vms', resource, object, oldObject: null, ...more };
    const body = await admission.answer({ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', request });
    return (JSON.parse(body) as { response: Response }).response;
  };
  return { answer, counts };
}

describe('the admission of pods that are to ask for addresses', () => {
  it('adds the request', async () => {
    const { answer, counts } = admissionWith();
    const { patch = '' } = await answer(POD);
    const value = { requests: { 'ipam.holdfast.dev/blue': '1' }, limits: { 'ipam.holdfast.dev/blue': '1' } };
    expect(JSON.parse(Buffer.from(patch, 'base64').toString())).to.deep.equal([
      { op: 'add', path: '/spec/containers/0/resources', value },
    ]);
    expect(counts).to.deep.equal(['CREATE patched']);
  });

  it('adds none while the gate is closed', async () => {
    expect(await admissionWith({ isClosed: true }).answer(POD)).to.deep.equal({ uid: 'u1', allowed: true });
  });

  it('lets everything else through', async () => {
    const { answer } = admissionWith();
    expect(await answer(POD, { operation: 'UPDATE' })).to.deep.equal({ uid: 'u1', allowed: true });
    const resource = { group: 'apps', version: 'v1', resource: 'deployments' };
    expect(await answer(POD, { resource })).to.deep.equal({ uid: 'u1', allowed: true });
  });

  it('lets a pod through that cannot be read, or where something of ours fails, and says so', async () => {
    const broken = await admissionWith().answer({ metadata: { labels: 5 } });
    expect([broken.allowed, broken.warnings?.[0]]).to.deep.equal([
      true,
      'its addresses are not counted: request.object.metadata.labels is 5, not an object',
    ]);
    const settle = () => Promise.reject(new Error('no more memory'));
    const failed = await admissionWith({ settle }).answer(POD);
    expect(failed.allowed).to.equal(true);
    expect(failed.warnings?.[0]).to.include('no more memory');
  });
});

describe('the pool of a NAD that nodes show', () => {
  const poolOf = (pools: [string, PoolGiven][], config: object = holdfastConfig()) => {
    const networks = cacheOf([nad('vms/blue', config)]);
    const directory = new PoolDirectory({
      pools: cacheOf(pools.map(([name, given]) => adminPool(name, given))),
      networks,
    });
    return findPublishedPool(directory, networks);
  };

  it('is the one that serves the network for the namespace, and says so', () => {
    expect(poolOf([['blue', { publishCapacity: true }]])('vms', 'vms/blue')).to.equal('blue');
  });

  const others: { name: string; pools: [string, PoolGiven][]; config?: object; nad?: string }[] = [
    { name: 'does not show it', pools: [['blue', {}]] },
    { name: 'serves other namespaces', pools: [['blue', { publishCapacity: true, namespaces: ['others'] }]] },
    { name: 'is being deleted', pools: [['blue', { publishCapacity: true, deleting: true }]] },
    {
      name: 'is of another IPAM',
      pools: [['blue', { publishCapacity: true }]],
      config: { name: 'blue', type: 'bridge', ipam: { type: 'host-local' } },
    },
    { name: 'is of no NAD that is there', pools: [['blue', { publishCapacity: true }]], nad: 'vms/gone' },
  ];
  for (const { name, pools, config, nad: key = 'vms/blue' } of others) {
    it(`is none where it ${name}`, () => {
      expect(poolOf(pools, config)('vms', key)).to.equal(undefined);
    });
  }
});
