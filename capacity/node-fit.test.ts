import { expect } from 'chai';
import { type SchedulingTraits, isUntainted, canRun } from './node-fit.js';
import { readSchedulingConstraints } from './scheduling-constraints.js';

const NODE: SchedulingTraits = {
  name: 'node-1',
  labels: { zone: 'a', cores: '16' },
  unschedulable: false,
  taints: [],
};
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

describe('whether a pod may run on a node', () => {
  const cases: { name: string; spec: object; node?: SchedulingTraits; expect: boolean }[] = [
    { name: 'without wishes', spec: {}, expect: true },
    { name: 'by a label that the node has', spec: { nodeSelector: { zone: 'a' } }, expect: true },
    { name: 'by a label of another value', spec: { nodeSelector: { zone: 'b' } }, expect: false },
    { name: 'by two labels of which it has one', spec: { nodeSelector: { zone: 'a', disk: 'fast' } }, expect: false },
    { name: 'In', spec: affinity(label('zone', 'In', 'b', 'a')), expect: true },
    { name: 'not In', spec: affinity(label('zone', 'In', 'b')), expect: false },
    { name: 'In of a label that is not there', spec: affinity(label('disk', 'In', 'fast')), expect: false },
    { name: 'NotIn', spec: affinity(label('zone', 'NotIn', 'b')), expect: true },
    { name: 'not NotIn', spec: affinity(label('zone', 'NotIn', 'a')), expect: false },
    { name: 'NotIn of a label that is not there', spec: affinity(label('disk', 'NotIn', 'fast')), expect: true },
    { name: 'Exists', spec: affinity(label('zone', 'Exists')), expect: true },
    { name: 'not Exists', spec: affinity(label('disk', 'Exists')), expect: false },
    { name: 'DoesNotExist', spec: affinity(label('disk', 'DoesNotExist')), expect: true },
    { name: 'not DoesNotExist', spec: affinity(label('zone', 'DoesNotExist')), expect: false },
    { name: 'Gt', spec: affinity(label('cores', 'Gt', '8')), expect: true },
    { name: 'not Gt of the same', spec: affinity(label('cores', 'Gt', '16')), expect: false },
    { name: 'Lt', spec: affinity(label('cores', 'Lt', '17')), expect: true },
    { name: 'not Lt of what is no number', spec: affinity(label('zone', 'Lt', '17')), expect: false },
    { name: 'not by an operator of tomorrow', spec: affinity(label('zone', 'Like', 'a')), expect: false },
    { name: 'one of two terms', spec: affinity(label('zone', 'In', 'b'), label('cores', 'Exists')), expect: true },
    {
      name: 'not by half a term',
      spec: affinity({ ...label('zone', 'In', 'a'), ...onName('node-2') }),
      expect: false,
    },
    { name: 'not by an empty term', spec: affinity({}), expect: false },
    { name: 'not by no terms', spec: affinity(), expect: false },
    { name: 'by its name, as of a DaemonSet', spec: affinity(onName('node-1')), expect: true },
    { name: 'not by the name of another', spec: affinity(onName('node-2')), expect: false },
    {
      name: 'not by another field',
      spec: affinity({ matchFields: [{ key: 'spec.x', operator: 'DoesNotExist' }] }),
      expect: false,
    },
    { name: 'not with a taint', spec: {}, node: TAINTED, expect: false },
    { name: 'with a toleration of it', spec: tolerates({ key: 'gpu', value: 'yes' }), node: TAINTED, expect: true },
    {
      name: 'not with one of another value',
      spec: tolerates({ key: 'gpu', value: 'no' }),
      node: TAINTED,
      expect: false,
    },
    { name: 'with one of any value', spec: tolerates({ key: 'gpu', operator: 'Exists' }), node: TAINTED, expect: true },
    { name: 'with one of everything', spec: tolerates({ operator: 'Exists' }), node: TAINTED, expect: true },
    {
      name: 'not with one of another effect',
      spec: tolerates({ key: 'gpu', operator: 'Exists', effect: 'NoExecute' }),
      node: TAINTED,
      expect: false,
    },
    { name: 'not on a cordoned node', spec: {}, node: CORDONED, expect: false },
    {
      name: 'on a cordoned node as a DaemonSet does',
      spec: tolerates({ key: 'node.kubernetes.io/unschedulable', operator: 'Exists', effect: 'NoSchedule' }),
      node: CORDONED,
      expect: true,
    },
  ];
  for (const { name, spec, node = NODE, expect: expected } of cases) {
    it(`${expected ? 'yes' : 'no'}: ${name}`, () => {
      expect(canRun(readSchedulingConstraints(spec)!, node)).to.equal(expected);
    });
  }

  it('a node is ordinary without taints, and not cordoned', () => {
    expect([NODE, TAINTED, CORDONED].map(isUntainted)).to.deep.equal([true, false, false]);
  });
});
