import { expect } from 'chai';
import { ResourceModifiers } from './resource-modifiers.js';

const OBJECT = {
  metadata: { namespace: 'vms', name: 'vm1', labels: { app: 'web' } },
  spec: { networks: [{ name: 'data' }], replicas: 1 },
};

function change(rule: object, groupResource = 'virtualmachines.kubevirt.io') {
  const text = JSON.stringify({ version: 'v1', resourceModifierRules: [rule] });
  return new ResourceModifiers(text).apply(groupResource, OBJECT);
}

describe('the imitation of the resource modifiers of Velero', () => {
  const mergePatches = [{ patchData: 'metadata: {labels: {app: null, new: "1"}}' }];
  const conditions = { groupResource: 'virtualmachines.kubevirt.io' };

  it('applies merge patches, in which null removes a key', () => {
    const { labels } = change({ conditions, mergePatches }).metadata;
    expect(labels).to.deep.equal({ new: '1' });
    expect(OBJECT.metadata.labels).to.deep.equal({ app: 'web' });
  });

  it('applies JSON patches, with values that are JSON if they can be', () => {
    const patches = [
      { operation: 'replace', path: '/spec/networks/0/name', value: 'more' },
      { operation: 'replace', path: '/spec/replicas', value: '2' },
      { operation: 'add', path: '/metadata/labels/count', value: '"3"' },
    ];
    expect(change({ conditions, patches })).to.deep.equal({
      metadata: { namespace: 'vms', name: 'vm1', labels: { app: 'web', count: '3' } },
      spec: { networks: [{ name: 'more' }], replicas: 2 },
    });
  });

  for (const [what, others] of [
    ['kind', { groupResource: 'virtualmachines' }],
    ['namespace', { namespaces: ['other'] }],
    ['name', { resourceNameRegex: '^vm[2-9]' }],
    ['value', { matches: [{ path: '/spec/networks/0/name', value: 'more' }] }],
  ] as const) {
    it(`leaves an object with another ${what} than in the conditions unchanged`, () => {
      expect(change({ conditions: { ...conditions, ...others }, mergePatches })).to.deep.equal(OBJECT);
    });
  }

  it('changes an object that meets all conditions', () => {
    const all = {
      namespaces: ['vms'],
      resourceNameRegex: 'm1$',
      matches: [{ path: '/spec/networks/0/name', value: 'data' }],
    };
    expect(change({ conditions: { ...conditions, ...all }, mergePatches })).not.to.deep.equal(OBJECT);
  });

  it('refuses keys that it does not know, other versions, and rules without patches', () => {
    expect(() => change({ conditions, strategicPatches: [] })).to.throw('unknown key strategicPatches');
    expect(() => change({ conditions: { ...conditions, labels: {} }, mergePatches })).to.throw('unknown key labels');
    expect(() => new ResourceModifiers('version: v2')).to.throw('got v2, want v1');
    expect(() => change({ conditions })).to.throw('a rule without patches');
  });
});
