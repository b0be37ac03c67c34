import { expect } from 'chai';
import { nadDefinition } from '../test/pool-objects.js';
import { changesNetwork } from './nad-change.js';
import { transformNad } from './transforms.js';

describe('A change of a NAD', () => {
  const made = (config: object, metadata: object) => {
    const nad = nadDefinition('vms/blue', config);
    return transformNad({ ...nad, metadata: { ...nad.metadata, ...metadata } });
  };
  const before = made({ name: 'blue' }, { resourceVersion: '1' });
  const isRelevant = (object: ReturnType<typeof made>) => changesNetwork({ type: 'changed', object, before });

  it('of labels and annotations changes no network', () => {
    const metadata = { resourceVersion: '2', labels: { a: 'b' }, annotations: { c: 'd' } };
    expect(isRelevant(made({ name: 'blue' }, metadata))).to.equal(false);
  });

  it('of the config changes the network, and so do a new NAD of the same name and a deletion', () => {
    expect(isRelevant(made({ name: 'blue', allowPersistentIPs: true }, { resourceVersion: '2' }))).to.equal(true);
    expect(isRelevant(made({ name: 'blue' }, { resourceVersion: '2', uid: 'other' }))).to.equal(true);
    expect(isRelevant(made({ name: 'blue' }, { deletionTimestamp: '2026-01-01T00:00:00Z' }))).to.equal(true);
    expect(changesNetwork({ type: 'removed', object: before, before })).to.equal(true);
    expect(changesNetwork({ type: 'added', object: before })).to.equal(true);
  });
});
