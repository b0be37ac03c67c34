import { expect } from 'chai';
import type { ObjectMeta } from '../../api/meta.js';
import { Cache } from './cache.js';
import { MutationCache } from './mutation-cache.js';

interface Item {
  readonly metadata: ObjectMeta & { uid: string; resourceVersion: string };
}

describe('a MutationCache', () => {
  let stored: Cache<Item>;
  let cache: MutationCache<Item>;

  beforeEach(() => {
    stored = new Cache();
    cache = new MutationCache({
      get: (name) => stored.get(name),
      set: (item) => {
        stored.set(item);
        return item;
      },
      delete: ({ metadata }) => void stored.delete(metadata.name),
    });
  });

  const item = (uid: string, resourceVersion: string): Item => ({ metadata: { name: 'a', uid, resourceVersion } });
  const uids = () => stored.list().map(({ metadata }) => metadata.uid);

  it('shows an object with an older version after the watch has shown a deletion, as after a restore of etcd', () => {
    cache.observe({ type: 'added', object: item('one', '90') });
    cache.observe({ type: 'removed', object: item('one', '90') });
    cache.observe({ type: 'added', object: item('one', '70') });
    expect(uids()).to.deep.equal(['one']);
  });

  it('ignores an answer about an earlier object, also if the process hears late that it deleted the later one', () => {
    cache.observe({ type: 'added', object: item('two', '20') });
    cache.observe({ type: 'removed', object: item('two', '21') });
    cache.forget('a', 'two');
    expect(cache.wrote(item('one', '10'))).to.equal(false);
    expect(uids()).to.deep.equal([]);
  });

  it('ignores the deletion of an earlier object after that of a later one', () => {
    cache.observe({ type: 'added', object: item('two', '20') });
    cache.forget('a', 'two');
    cache.observe({ type: 'removed', object: item('one', '10') });
    cache.observe({ type: 'added', object: item('two', '20') });
    expect(uids()).to.deep.equal([]);
  });
});
