import { expect } from 'chai';
import { Cache } from '../../kube/informers/cache.js';
import type { ObjectChange } from '../../kube/informers/informer.js';
import type { InformerRegistry, WatchSpec } from '../../kube/informers/informers.js';
import type { ListVersions } from '../../kube/informers/reflector.js';
import { type LeaseRecord, readLease } from '../../addressing/lease/lease.js';
import { leaseOf } from '../../test/objects/lease-objects.js';
import { NodeLeases, RELIST_MS } from './node-leases.js';

const PLACE = { containerId: 'c1', interfaceName: 'net1' };

function record(
  version: number,
  { node = 'n1', uid = 'u1', releasedAt }: { node?: string; uid?: string; releasedAt?: number } = {},
) {
  const lease = leaseOf('10.0.0.5', version, { uid, ...(releasedAt !== undefined && { releasedAt }) });
  const owner = { kind: 'Pod', namespace: 'apps', name: 'web', uid: 'web-uid' } as const;
  return readLease({ ...lease, spec: { ...lease.spec, owner, node, containerID: 'c1', interface: 'net1' } });
}

describe('the known leases of a node', () => {
  const cache = new Cache<LeaseRecord>();
  let watched: WatchSpec<never>;
  let tell: (change: ObjectChange<LeaseRecord>) => void = () => undefined;
  let beginList: (versions: ListVersions) => () => void;
  let own: NodeLeases;

  beforeEach(() => {
    for (const key of cache.keys()) cache.delete(key);
    const feed = {
      cache,
      hasSynced: true,
      synced: () => Promise.resolve(),
      onChange: (run: typeof tell) => (tell = run),
      onList: (run: typeof beginList) => (beginList = run),
    };
    const get = (spec: WatchSpec<never>) => ((watched = spec), feed);
    own = new NodeLeases({ get } as unknown as Pick<InformerRegistry, 'get'>, 'n1', { now: () => 5 }, 60_000);
  });

  /** Lists the leases of the node. @param whileListed what happens before the answer arrives */
  function list(version: number, leases: readonly LeaseRecord[], whileListed: () => void = () => undefined): void {
    const end = beginList({ from: '', to: String(version) });
    whileListed();
    for (const { metadata } of cache.list()) {
      const object = cache.get(metadata.name)!;
      if (leases.every((each) => each.metadata.name !== metadata.name) && cache.delete(metadata.name))
        tell({ type: 'removed', object, before: object });
    }
    for (const object of leases) {
      const before = cache.set(object);
      tell(before === undefined ? { type: 'added', object } : { type: 'changed', object, before });
    }
    end();
  }

  const versions = () => own.all().map(({ metadata }) => metadata.resourceVersion);

  it('are listed and not watched', () => {
    expect(watched).to.deep.include({ fieldSelector: 'spec.node=n1', relistMs: [120_000, RELIST_MS] });
  });

  it('are known as soon as they are written, and older versions in a list are ignored', () => {
    own.update(record(10));
    list(9, [record(9)]);
    expect(versions()).to.deep.equal(['10']);
    list(11, [record(11)]);
    expect(versions()).to.deep.equal(['11']);
    own.update(record(10));
    expect(versions()).to.deep.equal(['11']);
  });

  it('are forgotten once a list no longer contains them, also if no list ever did', () => {
    own.update(record(10));
    list(12, []);
    expect(versions()).to.deep.equal([]);
    list(20, [record(20)]);
    own.update(record(21, { releasedAt: 1 }));
    list(22, []);
    expect(versions()).to.deep.equal([]);
  });

  it('stay known if they were written after the list that lacks them', () => {
    list(9, [record(9)]);
    list(12, [], () => own.update(record(13)));
    expect(own.heldAt(PLACE)).to.have.length(1);
  });

  it('that are released are kept up to a limit, the last ones', () => {
    const name = record(1).metadata.name;
    for (let n = 0; n < 1_030; n++) {
      const lease = record(10 + n, { releasedAt: 1 });
      own.update({ ...lease, metadata: { ...lease.metadata, name: `${name}-${n}` }, coolsSince: n });
    }
    own.update(record(5_000));
    own.prune();
    expect(own.all()).to.have.length(1_025);
    expect([own.held, own.get(`${name}-5`), own.get(`${name}-6`)?.coolsSince]).to.deep.equal([1, undefined, 6]);
  });

  it('are removed once another node has them', () => {
    own.update(record(10));
    own.update(record(11, { node: 'n2' }));
    expect(own.all()).to.deep.equal([]);
  });

  it('are not removed by a read that is older than a write', () => {
    own.update(record(10));
    const known = own.get('blue.10-0-0-5');
    own.update(record(11));
    own.markGone('blue.10-0-0-5', known);
    expect(versions()).to.deep.equal(['11']);
    own.markGone('blue.10-0-0-5', own.get('blue.10-0-0-5'));
    expect(versions()).to.deep.equal([]);
  });

  it('are counted while they are held by a pod', () => {
    own.update(record(10));
    expect(own.held).to.equal(1);
    own.update(record(11, { releasedAt: 1 }));
    expect([own.held, own.heldAt(PLACE).length, own.ofPod('web-uid').length]).to.deep.equal([0, 0, 1]);
    list(20, [record(20, { uid: 'u2' })]);
    expect(own.held).to.equal(1);
    list(21, []);
    expect(own.held).to.equal(0);
  });

  it('are uncertain after a write without an answer until they are seen or read', () => {
    const { name } = record(1).metadata;
    const doubted = { name, pool: 'blue', address: record(1).address };
    own.addUncertain(doubted, PLACE);
    own.addUncertain(doubted, { ...PLACE, containerId: 'c2' });
    list(9, [record(9, { releasedAt: 1 })]);
    expect(own.uncertainLeasesOf(PLACE)).to.deep.equal([name]);
    list(10, [record(10)]);
    expect(own.uncertainLeasesOf(PLACE)).to.deep.equal([]);
    expect(own.uncertainLeasesOf({ ...PLACE, containerId: 'c2' })).to.deep.equal([name]);
    own.resolve(name, { ...PLACE, containerId: 'c2' });
    expect(own.uncertainLeasesOf({ ...PLACE, containerId: 'c2' })).to.deep.equal([]);
  });
});
