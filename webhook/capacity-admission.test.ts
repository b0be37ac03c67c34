import { expect } from 'chai';
import { systemClock } from '../kube/clock.js';
import { silentLogger } from '../kube/log.js';
import { PoolDirectory } from '../addressing/directory/directory.js';
import { type PoolGiven, adminPool, cacheOf, holdfastConfig, nad } from '../test/objects/pool-objects.js';
import { clusterViewOf } from '../test/objects/pod-review.js';
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

function admissionWith(given: { isClosed?: boolean; decide?: PodReviewer['decideWithRechecks'] } = {}) {
  const counts: string[] = [];
  const decideOnce: PodReviewer['decideWithRechecks'] = (_namespace, decide) =>
    Promise.resolve(decide(clusterViewOf({})));
  const admission = new CapacityAdmission({
    podReviewer: { decideWithRechecks: given.decide ?? decideOnce },
    ...(!given.isClosed && { publishedPool: (namespace, key) => (key === `${namespace}/blue` ? 'blue' : undefined) }),
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

describe('the admission of pods that need addresses', () => {
  it('adds a request for an address', async () => {
    const { answer, counts } = admissionWith();
    const { patch = '' } = await answer(POD);
    const value = { requests: { 'ipam.holdfast.dev/blue': '1' }, limits: { 'ipam.holdfast.dev/blue': '1' } };
    expect(JSON.parse(Buffer.from(patch, 'base64').toString())).to.deep.equal([
      { op: 'add', path: '/spec/containers/0/resources', value },
    ]);
    expect(counts).to.deep.equal(['CREATE patched']);
  });

  it('adds no request while the gate is closed', async () => {
    expect(await admissionWith({ isClosed: true }).answer(POD)).to.deep.equal({ uid: 'u1', allowed: true });
  });

  it('allows all other operations and resources', async () => {
    const { answer } = admissionWith();
    expect(await answer(POD, { operation: 'UPDATE' })).to.deep.equal({ uid: 'u1', allowed: true });
    const resource = { group: 'apps', version: 'v1', resource: 'deployments' };
    expect(await answer(POD, { resource })).to.deep.equal({ uid: 'u1', allowed: true });
  });

  it('allows a malformed pod, or one whose review fails, with a warning', async () => {
    const broken = await admissionWith().answer({ metadata: { labels: 5 } });
    expect([broken.allowed, broken.warnings?.[0]]).to.deep.equal([
      true,
      'the scheduler does not count the addresses of this pod: request.object.metadata.labels is 5, not an object',
    ]);
    const decide = () => Promise.reject(new Error('no more memory'));
    const failed = await admissionWith({ decide }).answer(POD);
    expect(failed.allowed).to.equal(true);
    expect(failed.warnings?.[0]).to.include('no more memory');
  });
});

describe('the published pool of a NAD', () => {
  const poolOf = (pools: [string, PoolGiven][], config: object = holdfastConfig()) => {
    const networks = cacheOf([nad('vms/blue', config)]);
    const directory = new PoolDirectory({
      pools: cacheOf(pools.map(([name, given]) => adminPool(name, given))),
      networks,
    });
    return findPublishedPool(directory, networks);
  };

  it('is the one that serves the network for the namespace and publishes its capacity', () => {
    expect(poolOf([['blue', { publishCapacity: true }]])('vms', 'vms/blue')).to.equal('blue');
  });

  const others: { name: string; pools: [string, PoolGiven][]; config?: object; nad?: string }[] = [
    { name: 'does not publish its capacity', pools: [['blue', {}]] },
    { name: 'serves other namespaces', pools: [['blue', { publishCapacity: true, namespaces: ['others'] }]] },
    { name: 'is being deleted', pools: [['blue', { publishCapacity: true, deleting: true }]] },
    {
      name: 'is not used because the NAD delegates to another IPAM',
      pools: [['blue', { publishCapacity: true }]],
      config: { name: 'blue', type: 'bridge', ipam: { type: 'host-local' } },
    },
    { name: 'belongs to a NAD that does not exist', pools: [['blue', { publishCapacity: true }]], nad: 'vms/gone' },
  ];
  for (const { name, pools, config, nad: key = 'vms/blue' } of others) {
    it(`is undefined if the pool ${name}`, () => {
      expect(poolOf(pools, config)('vms', key)).to.equal(undefined);
    });
  }
});
