import { expect } from 'chai';
import { type SchedulingTraits, canRun, isUntainted, readSchedulingConstraints } from './node-fit.js';

const NODE: SchedulingTraits = { name: 'node-1', labels: { zone: 'a', cores: '16' }, unschedulable: false, taints: [] };
const TAINTED: SchedulingTraits = { ...NODE, taints: [{ key: 'gpu', value: 'yes', effect: 'NoSchedule' }] };
const CORDONED: SchedulingTraits = { ...NODE, unschedulable: true };

function affinity(...terms: object[]): object {
  return {
    affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: terms } } },
  };
}

function label(key: string, operator: string, ...values: string[]): object {
  return { matchExpressions: [{ key, operator, ...(values.length > 0 && { values }) }] };
}

const onName = (...values: string[]) => ({ matchFields: [{ key: 'metadata.name', operator: 'In', values }] });
const tolerates = (...tolerations: object[]) => ({ tolerations });

describe('a pod can run on a node', () => {
  const cases: { name: string; spec: object; node?: SchedulingTraits; expect: boolean }[] = [
    { name: 'without constraints', spec: {}, expect: true },
    { name: 'with a node selector for a label of the node', spec: { nodeSelector: { zone: 'a' } }, expect: true },
    { name: 'with a node selector for another value of a label', spec: { nodeSelector: { zone: 'b' } }, expect: false },
    { name: 'with one of two selected labels', spec: { nodeSelector: { zone: 'a', disk: 'fast' } }, expect: false },
    { name: 'In', spec: affinity(label('zone', 'In', 'b', 'a')), expect: true },
    { name: 'with In and another value', spec: affinity(label('zone', 'In', 'b')), expect: false },
    { name: 'with In and a missing label', spec: affinity(label('disk', 'In', 'fast')), expect: false },
    { name: 'NotIn', spec: affinity(label('zone', 'NotIn', 'b')), expect: true },
    { name: 'with NotIn and the value', spec: affinity(label('zone', 'NotIn', 'a')), expect: false },
    { name: 'with NotIn and a missing label', spec: affinity(label('disk', 'NotIn', 'fast')), expect: true },
    { name: 'Exists', spec: affinity(label('zone', 'Exists')), expect: true },
    { name: 'with Exists and a missing label', spec: affinity(label('disk', 'Exists')), expect: false },
    { name: 'DoesNotExist', spec: affinity(label('disk', 'DoesNotExist')), expect: true },
    { name: 'with DoesNotExist and a label of the node', spec: affinity(label('zone', 'DoesNotExist')), expect: false },
    { name: 'Gt', spec: affinity(label('cores', 'Gt', '8')), expect: true },
    { name: 'with Gt and an equal value', spec: affinity(label('cores', 'Gt', '16')), expect: false },
    { name: 'Lt', spec: affinity(label('cores', 'Lt', '17')), expect: true },
    { name: 'with Lt and a value that is not a number', spec: affinity(label('zone', 'Lt', '17')), expect: false },
    { name: 'with an unknown operator', spec: affinity(label('zone', 'Like', 'a')), expect: false },
    { name: 'with one of two terms', spec: affinity(label('zone', 'In', 'b'), label('cores', 'Exists')), expect: true },
    { name: 'with half a term', spec: affinity({ ...label('zone', 'In', 'a'), ...onName('node-2') }), expect: false },
    { name: 'with an empty term', spec: affinity({}), expect: false },
    { name: 'with an empty list of terms', spec: affinity(), expect: false },
    { name: 'with the name of the node, as a DaemonSet', spec: affinity(onName('node-1')), expect: true },
    { name: 'with the name of another node', spec: affinity(onName('node-2')), expect: false },
    {
      name: 'by other fields',
      spec: affinity({ matchFields: [{ key: 'spec.x', operator: 'DoesNotExist' }] }),
      expect: false,
    },
    { name: 'with a taint and no toleration', spec: {}, node: TAINTED, expect: false },
    { name: 'tolerating the taint', spec: tolerates({ key: 'gpu', value: 'yes' }), node: TAINTED, expect: true },
    { name: 'tolerating another value', spec: tolerates({ key: 'gpu', value: 'no' }), node: TAINTED, expect: false },
    { name: 'tolerating any value', spec: tolerates({ key: 'gpu', operator: 'Exists' }), node: TAINTED, expect: true },
    { name: 'with a toleration of all taints', spec: tolerates({ operator: 'Exists' }), node: TAINTED, expect: true },
    {
      name: 'with a toleration of another effect',
      spec: tolerates({ key: 'gpu', operator: 'Exists', effect: 'NoExecute' }),
      node: TAINTED,
      expect: false,
    },
    { name: 'with a cordoned node', spec: {}, node: CORDONED, expect: false },
    {
      name: 'with a cordoned node, as a DaemonSet',
      spec: tolerates({ key: 'node.kubernetes.io/unschedulable', operator: 'Exists', effect: 'NoSchedule' }),
      node: CORDONED,
      expect: true,
    },
  ];
  for (const { name, spec, node = NODE, expect: expected } of cases) {
    it(`${name}: ${expected ? 'yes' : 'no'}`, () => {
      expect(canRun(readSchedulingConstraints(spec)!, node)).to.equal(expected);
    });
  }

  it('without tolerations only if it has no taints and is not cordoned', () => {
    expect([NODE, TAINTED, CORDONED].map(isUntainted)).to.deep.equal([true, false, false]);
  });
});
