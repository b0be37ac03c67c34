import { expect } from 'chai';
import type { Pod } from '../api/pod.js';
import { type PublishingPool, choosePools, hasPoolNetwork, isSameNodeState, toNodeRecord } from './node-record.js';
import { readPodRecord, requestsOf, withFirstAttachment } from './pod-record.js';
import { capacityResource } from '../api/capacity.js';
import { compiledPool } from '../test/objects/lease-objects.js';
import { day } from '../test/objects/pool-objects.js';

const BLUE = 'ipam.holdfast.dev/blue';
const asks = (count: string, more: object = {}) => ({ resources: { requests: { cpu: '1', [BLUE]: count } }, ...more });

function pod(given: { spec?: object; status?: object; deleting?: boolean } = {}): Pod {
  return {
    metadata: {
      name: 'p',
      namespace: 'ns',
      uid: 'u',
      ...(given.deleting && { deletionTimestamp: '2026-01-01T00:00:00Z' }),
    },
    spec: { containers: [asks('1')], ...given.spec },
    status: { ...given.status },
  } as Pod;
}

describe('the cached fields of a pod that requests addresses', () => {
  it('are its requests and its node', () => {
    expect(readPodRecord(pod({ spec: { nodeName: 'n1' } }), 0)).to.deep.equal({
      uid: 'u',
      namespace: 'ns',
      requests: new Map([[BLUE, 1]]),
      isLeaving: false,
      node: 'n1',
    });
  });

  it('have as many resources as a pod can have networks', () => {
    const requests = Object.fromEntries(Array.from({ length: 65 }, (_, index) => [`${BLUE}-${index}`, '1']));
    expect(readPodRecord(pod({ spec: { containers: [{ resources: { requests } }] } }), 0)?.requests.size).to.equal(64);
  });

  it('are absent for a pod that requests none or has ended', () => {
    expect(readPodRecord(pod({ spec: { containers: [{}] } }), 0)).to.equal(undefined);
    expect(readPodRecord(pod({ status: { phase: 'Succeeded' } }), 0)).to.equal(undefined);
  });

  it('include its scheduling constraints once it is unschedulable', () => {
    const conditions = [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable' }];
    expect(readPodRecord(pod({ status: { conditions } }), 0)?.constraints).to.deep.equal({
      nodeSelector: {},
      tolerations: [],
    });
    expect(readPodRecord(pod(), 0)?.constraints).to.equal(undefined);
    expect(readPodRecord(pod({ status: { conditions }, deleting: true }), 0)?.constraints).to.equal(undefined);
    const gated = [{ type: 'PodScheduled', status: 'False', reason: 'SchedulingGated' }];
    expect(readPodRecord(pod({ status: { conditions: gated } }), 0)?.constraints).to.equal(undefined);
  });

  it('exclude scheduling constraints above the size limit', () => {
    const conditions = [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable' }];
    const tolerations = Array.from({ length: 1025 }, () => ({ operator: 'Exists' }));
    const containers = [{ resources: { requests: { [BLUE]: '1' } } }];
    const read = (count: number) =>
      readPodRecord(pod({ spec: { containers, tolerations: tolerations.slice(0, count) }, status: { conditions } }), 0);
    expect(read(1024)?.constraints?.tolerations).to.have.length(1024);
    expect(read(1025)).to.deep.include({ requests: new Map([[BLUE, 1]]) });
    expect(read(1025)?.constraints).to.equal(undefined);
  });

  it('show that it is attached once the runtime reports its sandbox', () => {
    const all = [{}, { phase: 'Pending' }, { phase: 'Pending', podIP: '10.244.0.7' }, { phase: 'Running' }];
    const attachedAt = (status: object, now: number) => readPodRecord(pod({ status }), now)?.attachedAt;
    expect(all.map((status) => attachedAt(status, 5))).to.deep.equal([undefined, undefined, 5, 5]);
  });

  it('keep the time at which it was first seen attached, but not that of an earlier pod of its name', () => {
    const [first, later] = [5, 9].map((now) => readPodRecord(pod({ status: { phase: 'Running' } }), now)!);
    expect(withFirstAttachment(later!, first)).to.have.property('attachedAt', 5);
    expect(withFirstAttachment(later!, { ...first!, uid: 'earlier' })).to.have.property('attachedAt', 9);
  });

  it('show that it is being deleted', () => {
    expect(readPodRecord(pod({ deleting: true }), 0)?.isLeaving).to.equal(true);
  });

  const sums: { name: string; spec: object; expect: number | undefined }[] = [
    { name: 'sum up the requests of containers', spec: { containers: [asks('1'), asks('2')] }, expect: 3 },
    {
      name: 'take the maximum of init containers and containers',
      spec: { initContainers: [asks('2')], containers: [asks('1')] },
      expect: 2,
    },
    {
      name: 'add a restartable init container to the containers',
      spec: { initContainers: [asks('2', { restartPolicy: 'Always' })], containers: [asks('1')] },
      expect: 3,
    },
    {
      name: 'add a restartable init container to later init containers',
      spec: { initContainers: [asks('2', { restartPolicy: 'Always' }), asks('3')], containers: [asks('1')] },
      expect: 5,
    },
    { name: 'are empty for a spec without requests', spec: {}, expect: undefined },
  ];
  for (const { name, spec, expect: expected } of sums) {
    it(name, () => {
      expect(requestsOf(spec).get(BLUE)).to.equal(expected);
    });
  }
});

describe('the cached fields of a node', () => {
  const node = (more: object = {}) => ({
    metadata: { name: 'n1', uid: 'u', resourceVersion: '5', labels: { zone: 'a' }, annotations: { big: 'x' } },
    status: { capacity: { cpu: '4', [BLUE]: '2k' }, allocatable: { cpu: '4', [BLUE]: '7' }, conditions: ['x'] },
    ...more,
  });

  it('are the keys of Holdfast and the fields that matter for scheduling', () => {
    const taints = [
      { key: 'a', effect: 'NoSchedule' },
      { key: 'b', effect: 'PreferNoSchedule' },
    ];
    const { traits, shown } = toNodeRecord(node({ spec: { unschedulable: true, taints } }));
    expect(traits).to.deep.equal({
      name: 'n1',
      labels: { zone: 'a' },
      unschedulable: true,
      taints: [{ key: 'a', value: '', effect: 'NoSchedule' }],
    });
    expect(shown).to.deep.equal(new Map([[BLUE, { capacity: 2000, allocatable: 7 }]]));
  });

  it('do not change with heartbeats', () => {
    const [before, beat] = [
      toNodeRecord(node()),
      toNodeRecord(node({ metadata: { ...node().metadata, resourceVersion: '6' } })),
    ];
    expect(isSameNodeState(before, beat)).to.equal(true);
    expect(isSameNodeState(before, toNodeRecord(node({ status: { capacity: {}, allocatable: {} } })))).to.equal(false);
  });

  it('decide by labels whether it has a network, unless it is being deleted', () => {
    const record = toNodeRecord(node());
    expect([undefined, { zone: 'a' }, { zone: 'b' }].map((selector) => hasPoolNetwork(record, selector))).to.deep.equal(
      [true, true, false],
    );
    const going = { ...record, metadata: { ...record.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } };
    expect(hasPoolNetwork(going)).to.equal(false);
  });
});

function publishing(name: string, born: number, isDerived = false): PublishingPool {
  return { pool: compiledPool({ publishCapacity: true }, name), createdAt: day(born), isDerived };
}

const showing = (...pools: string[]) => ({ shown: new Map(pools.map((name) => [capacityResource(name), {}])) });

describe('the pools whose capacity nodes show', () => {
  it('are limited, with pools of administrators before derived ones, and older ones first', () => {
    const pools = [publishing('d', 1, true), publishing('c', 3), publishing('b', 2), publishing('a', 3)];
    const { chosen, leftOut } = choosePools(pools, [], 2);
    expect(chosen.map(({ name }) => name)).to.deep.equal(['b', 'a']);
    expect(leftOut).to.deep.equal(['c', 'd']);
  });

  it('include the pools that nodes already show before new ones', () => {
    const pools = [publishing('old', 1), publishing('older', 0), publishing('young', 9, true)];
    const { chosen } = choosePools(pools, [showing(), showing('young')], 2);
    expect(chosen.map(({ name }) => name)).to.deep.equal(['young', 'older']);
  });

  it('include another pool as soon as one no longer publishes', () => {
    const { chosen } = choosePools([publishing('a', 1), publishing('b', 2)], [showing('gone', 'a')], 2);
    expect(chosen.map(({ name }) => name)).to.deep.equal(['a', 'b']);
  });
});
