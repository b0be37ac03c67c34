import { expect } from 'chai';
import type { ObjectChange } from '../../kube/informer.js';
import type { InformerRegistry } from '../../kube/informers.js';
import { type LeaseRecord, readLease } from '../../addressing/lease/lease.js';
import { leaseOf } from '../../test/lease-objects.js';
import { NodeLeases } from './node-leases.js';

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
  let tell: (change: ObjectChange<LeaseRecord>) => void = () => undefined;
  let own: NodeLeases;

  beforeEach(() => {
    const feed = { hasSynced: true, synced: () => Promise.resolve(), onChange: (run: typeof tell) => (tell = run) };
    own = new NodeLeases({ get: () => feed } as unknown as Pick<InformerRegistry, 'get'>, 'n1', { now: () => 5 });
  });

  const versions = () => own.all().map(({ metadata }) => metadata.resourceVersion);
  const removed = (object: LeaseRecord) => tell({ type: 'removed', object, before: object });

  it('are known as soon as they are written, and older watch events are ignored', () => {
    own.update(record(10));
    tell({ type: 'added', object: record(9) });
    expect(versions()).to.deep.equal(['10']);
    tell({ type: 'changed', object: record(11), before: record(9) });
    expect(versions()).to.deep.equal(['11']);
    own.update(record(10));
    expect(versions()).to.deep.equal(['11']);
  });

  it('stay known if the watch shows late that another node had them before', () => {
    own.update(record(12));
    removed(record(9));
    expect(own.heldAt(PLACE)).to.have.length(1);
    removed(record(12));
    expect(own.heldAt(PLACE)).to.deep.equal([]);
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
    tell({ type: 'added', object: record(20, { uid: 'u2' }) });
    expect(own.held).to.equal(1);
    removed(record(20, { uid: 'u2' }));
    expect(own.held).to.equal(0);
  });

  it('are unconfirmed after a write until the watch shows them, or a newer version', () => {
    own.update(record(10));
    expect(own.unconfirmed()).to.deep.equal([{ record: record(10), since: 5 }]);
    tell({ type: 'added', object: record(9) });
    expect(own.unconfirmed()).to.have.length(1);
    tell({ type: 'changed', object: record(10), before: record(9) });
    expect(own.unconfirmed()).to.deep.equal([]);
  });

  it('are uncertain after a write without an answer until they are seen or read', () => {
    const { name } = record(1).metadata;
    const doubted = { name, pool: 'blue', address: record(1).address };
    own.addUncertain(doubted, PLACE);
    own.addUncertain(doubted, { ...PLACE, containerId: 'c2' });
    tell({ type: 'added', object: record(9, { releasedAt: 1 }) });
    expect(own.uncertainLeasesOf(PLACE)).to.deep.equal([name]);
    tell({ type: 'changed', object: record(10), before: record(9) });
    expect(own.uncertainLeasesOf(PLACE)).to.deep.equal([]);
    expect(own.uncertainLeasesOf({ ...PLACE, containerId: 'c2' })).to.deep.equal([name]);
    own.resolve(name, { ...PLACE, containerId: 'c2' });
    expect(own.uncertainLeasesOf({ ...PLACE, containerId: 'c2' })).to.deep.equal([]);
  });
});
