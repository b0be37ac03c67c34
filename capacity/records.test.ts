import { expect } from 'chai';
import type { Pod } from '../api/pod.js';
import { hasPoolNetwork, isSameNodeState, transformNode } from './node-record.js';
import { readPodRecord, requestsOf } from './pod-record.js';

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

describe('what is remembered of a pod that asks for addresses', () => {
  it('is what it asks for, and where', () => {
    expect(readPodRecord(pod({ spec: { nodeName: 'n1' } }))).to.deep.equal({
      uid: 'u',
      namespace: 'ns',
      requests: new Map([[BLUE, 1]]),
      attached: false,
      leaving: false,
      node: 'n1',
    });
  });

  it('is nothing of one that asks for none, or has ended', () => {
    expect(readPodRecord(pod({ spec: { containers: [{}] } }))).to.equal(undefined);
    expect(readPodRecord(pod({ status: { phase: 'Succeeded' } }))).to.equal(undefined);
  });

  it('is where it may run, once the scheduler has found no node for it', () => {
    const conditions = [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable' }];
    expect(readPodRecord(pod({ status: { conditions } }))?.needs).to.deep.equal({ nodeSelector: {}, tolerations: [] });
    expect(readPodRecord(pod())?.needs).to.equal(undefined);
    expect(readPodRecord(pod({ status: { conditions }, deleting: true }))?.needs).to.equal(undefined);
    const gated = [{ type: 'PodScheduled', status: 'False', reason: 'SchedulingGated' }];
    expect(readPodRecord(pod({ status: { conditions: gated } }))?.needs).to.equal(undefined);
  });

  it('is not where it may run, if it says more than the bound', () => {
    const conditions = [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable' }];
    const tolerations = Array.from({ length: 1025 }, () => ({ operator: 'Exists' }));
    const containers = [{ resources: { requests: { [BLUE]: '1' } } }];
    const read = (count: number) =>
      readPodRecord(pod({ spec: { containers, tolerations: tolerations.slice(0, count) }, status: { conditions } }));
    expect(read(1024)?.needs?.tolerations).to.have.length(1024);
    expect(read(1025)).to.deep.include({ requests: new Map([[BLUE, 1]]) });
    expect(read(1025)?.needs).to.equal(undefined);
  });

  it('is that its network is there, once the runtime has told of its sandbox', () => {
    const statuses = [{}, { phase: 'Pending' }, { phase: 'Pending', podIP: '10.244.0.7' }, { phase: 'Running' }];
    expect(statuses.map((status) => readPodRecord(pod({ status }))?.attached)).to.deep.equal([
      false,
      false,
      true,
      true,
    ]);
  });

  it('is that it is being deleted', () => {
    expect(readPodRecord(pod({ deleting: true }))?.leaving).to.equal(true);
  });

  const sums: { name: string; spec: object; expect: number | undefined }[] = [
    { name: 'containers are added up', spec: { containers: [asks('1'), asks('2')] }, expect: 3 },
    {
      name: 'an init container comes before them',
      spec: { initContainers: [asks('2')], containers: [asks('1')] },
      expect: 2,
    },
    {
      name: 'one that goes on comes beside them',
      spec: { initContainers: [asks('2', { restartPolicy: 'Always' })], containers: [asks('1')] },
      expect: 3,
    },
    {
      name: 'and beside those that come after it',
      spec: { initContainers: [asks('2', { restartPolicy: 'Always' }), asks('3')], containers: [asks('1')] },
      expect: 5,
    },
    { name: 'nothing is nothing', spec: {}, expect: undefined },
  ];
  for (const { name, spec, expect: expected } of sums) {
    it(name, () => {
      expect(requestsOf(spec).get(BLUE)).to.equal(expected);
    });
  }
});

describe('what is remembered of a node', () => {
  const node = (more: object = {}) => ({
    metadata: { name: 'n1', uid: 'u', resourceVersion: '5', labels: { zone: 'a' }, annotations: { big: 'x' } },
    status: { capacity: { cpu: '4', [BLUE]: '2k' }, allocatable: { cpu: '4', [BLUE]: '7' }, conditions: ['x'] },
    ...more,
  });

  it('is what it shows of ours, and what decides who may run there', () => {
    const taints = [
      { key: 'a', effect: 'NoSchedule' },
      { key: 'b', effect: 'PreferNoSchedule' },
    ];
    const { traits, shown } = transformNode(node({ spec: { unschedulable: true, taints } }));
    expect(traits).to.deep.equal({
      name: 'n1',
      labels: { zone: 'a' },
      unschedulable: true,
      taints: [{ key: 'a', value: '', effect: 'NoSchedule' }],
    });
    expect(shown).to.deep.equal(new Map([[BLUE, { capacity: 2000, allocatable: 7 }]]));
  });

  it('does not change with its heartbeats', () => {
    const [before, beat] = [
      transformNode(node()),
      transformNode(node({ metadata: { ...node().metadata, resourceVersion: '6' } })),
    ];
    expect(isSameNodeState(before, beat)).to.equal(true);
    expect(isSameNodeState(before, transformNode(node({ status: { capacity: {}, allocatable: {} } })))).to.equal(false);
  });

  it('has a network by its labels, unless it is being deleted', () => {
    const record = transformNode(node());
    expect([undefined, { zone: 'a' }, { zone: 'b' }].map((selector) => hasPoolNetwork(record, selector))).to.deep.equal(
      [true, true, false],
    );
    const going = { ...record, metadata: { ...record.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } };
    expect(hasPoolNetwork(going)).to.equal(false);
  });
});
