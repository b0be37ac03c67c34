import { expect } from 'chai';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import { ClaimsWorld, apiError } from './testing/model/world.js';
import { WorldApi } from './testing/model/world-api.js';
import { claim, vmReference } from '../../test/workload-objects.js';
import { Client } from '../../kube/client.js';
import { TransportError, classifyError } from '../../kube/errors.js';
import type { Action } from './action.js';
import { applyAll, rejectionOf, mostUrgent } from './apply.js';

const KEY = 'vms/vm1.data';

describe('applying actions', () => {
  let world: ClaimsWorld;
  let api: WorldApi;
  let client: Client;
  let stored: IPAMClaim;

  beforeEach(() => {
    world = new ClaimsWorld();
    api = new WorldApi(world);
    client = new Client(api);
    stored = create(claim());
  });

  function create(made: IPAMClaim): IPAMClaim {
    const { uid: _uid, resourceVersion: _version, ...metadata } = made.metadata;
    return world.create('claims', { ...made, metadata });
  }

  function release(seen: IPAMClaim, successor?: IPAMClaim): Action {
    return { kind: 'release', claim: seen, ...(successor && { successor }), reason: 'test' };
  }

  function update(seen: IPAMClaim): Action {
    const owner = { kind: 'VirtualMachine' as const, name: 'vm1', uid: 'vm-uid' };
    return {
      kind: 'update',
      claim: seen,
      owner,
      set: { annotations: { note: 'new' }, interface: 'net1' },
      reason: 'test',
    };
  }

  async function errorsOf(...actions: Action[]): Promise<string[]> {
    return (await applyAll(actions, client)).map(({ error }) => classifyError(error));
  }

  it('changes what is to change and nothing else', async () => {
    world.update('claims', KEY, (copy) => Object.assign(copy.metadata, { labels: { theirs: 'yes' } }));
    expect(await errorsOf(update(world.get('claims', KEY)!))).to.deep.equal([]);
    const after = world.get('claims', KEY)!;
    expect(after.metadata.annotations).to.deep.equal({ ...stored.metadata.annotations, note: 'new' });
    expect(after.metadata.labels).to.deep.equal({ theirs: 'yes' });
    expect(after.spec).to.deep.equal({ network: 'blue-net', interface: 'net1' });
  });

  it('changes no claim that has changed since it was seen', async () => {
    world.update('claims', KEY, ({ spec }) => Object.assign(spec, { interface: 'other' }));
    expect(await errorsOf(update(stored))).to.deep.equal(['stale']);
    expect(world.get('claims', KEY)?.metadata.annotations).to.not.have.property('note');
  });

  it('lets a claim go: first deleted, then without our finalizer', async () => {
    expect(await errorsOf(release(stored))).to.deep.equal([]);
    expect(world.get('claims', KEY)).to.equal(undefined);
    expect(api.seen).to.deep.equal(['DELETE claims vm1.data', 'PATCH claims vm1.data']);
  });

  it('only takes its finalizer off a claim that is being deleted', async () => {
    world.delete('claims', KEY);
    expect(await errorsOf(release(world.get('claims', KEY)!))).to.deep.equal([]);
    expect(world.get('claims', KEY)).to.equal(undefined);
    expect(api.seen).to.deep.equal(['PATCH claims vm1.data']);
  });

  it('goes on where the garbage collector deleted the claim first', async () => {
    world.delete('claims', KEY);
    expect(await errorsOf(release(stored))).to.deep.equal([]);
    expect(world.get('claims', KEY)).to.equal(undefined);
  });

  it('is content where the claim is gone', async () => {
    world.dropFinalizers('claims', KEY, 'kubevirt.io/persistent-ipam');
    world.delete('claims', KEY);
    expect(await errorsOf(release(stored))).to.deep.equal([]);
  });

  it('does not touch another claim of the same name', async () => {
    world.dropFinalizers('claims', KEY, 'kubevirt.io/persistent-ipam');
    world.delete('claims', KEY);
    const other = create(claim());
    expect(await errorsOf(release(stored))).to.deep.equal([]);
    expect(world.get('claims', KEY)).to.deep.equal(other);
  });

  it('does not delete a claim that changed since it was judged', async () => {
    world.update('claims', KEY, ({ metadata }) =>
      Object.assign(metadata, { ownerReferences: [vmReference('new-uid')] }),
    );
    expect(await errorsOf(release(stored))).to.deep.equal(['stale']);
    expect(world.get('claims', KEY)?.metadata.deletionTimestamp).to.equal(undefined);
  });

  it('does not finish a claim that has another owner by now', async () => {
    world.update('claims', KEY, ({ metadata }) =>
      Object.assign(metadata, { ownerReferences: [vmReference('new-uid')] }),
    );
    world.delete('claims', KEY);
    expect(await errorsOf(release(stored))).to.deep.equal(['stale']);
    expect(world.get('claims', KEY)?.metadata.finalizers).to.deep.equal(['kubevirt.io/persistent-ipam']);
  });

  it('does not finish a claim that changed after it was judged', async () => {
    world.delete('claims', KEY);
    const seen = world.get('claims', KEY)!;
    world.update('claims', KEY, ({ metadata }) =>
      Object.assign(metadata, { ownerReferences: [vmReference('new-uid')] }),
    );
    expect(await errorsOf(release(seen))).to.deep.equal(['stale']);
    expect(world.get('claims', KEY)?.metadata.finalizers).to.deep.equal(['kubevirt.io/persistent-ipam']);
  });

  it('looks again where the finalizers are not what was seen', async () => {
    world.delete('claims', KEY);
    const seen = world.get('claims', KEY)!;
    world.update('claims', KEY, ({ metadata }) => metadata.finalizers?.unshift('other'));
    expect(await errorsOf(release(seen))).to.deep.equal(['stale']);
    expect(world.get('claims', KEY)?.metadata.finalizers).to.deep.equal(['other', 'kubevirt.io/persistent-ipam']);
  });

  it('creates the successor as soon as the claim is gone', async () => {
    expect(await errorsOf(release(stored, { ...claim({ ips: ['10.0.0.5/24'] }) }))).to.deep.equal([]);
    expect(world.get('claims', KEY)?.metadata.uid).to.not.equal(stored.metadata.uid);
    expect(api.seen.at(-1)).to.equal('POST claims');
  });

  it('looks again where finalizers of others keep the claim from its successor', async () => {
    world.update('claims', KEY, ({ metadata }) => metadata.finalizers?.push('other'));
    expect(await errorsOf(release(world.get('claims', KEY)!, claim()))).to.deep.equal(['stale']);
    expect(world.get('claims', KEY)?.metadata.finalizers).to.deep.equal(['other']);
  });

  it('leaves a claim that it can finish later where it crashes in between', async () => {
    api.before = ({ method }) => {
      if (method === 'PATCH') throw new TransportError('broken', 'crashed');
    };
    expect(await errorsOf(release(stored))).to.deep.equal(['transient']);
    const left = world.get('claims', KEY)!;
    expect(left.metadata.deletionTimestamp).to.be.a('string');
    expect(left.metadata.finalizers).to.deep.equal(['kubevirt.io/persistent-ipam']);
  });

  it('is not stopped by an action that fails, and does nothing for those that only say why', async () => {
    const taken: Action = { kind: 'create', claim: claim(), reason: 'test' };
    const free: Action = { kind: 'create', claim: claim({ name: 'vm1.extra' }), reason: 'test' };
    const wait: Action = { kind: 'wait', claimName: 'vm1.data', reason: 'test' };
    expect(await errorsOf(taken, wait, free)).to.deep.equal(['stale']);
    expect(world.get('claims', 'vms/vm1.extra')).to.not.equal(undefined);
    expect(api.seen).to.deep.equal(['POST claims', 'POST claims']);
  });

  it('retries as soon as any of several errors asks for it', () => {
    const failure = (error: unknown) => ({ action: release(stored), error });
    const [refused, away, stale] = [
      failure(apiError(403, 'Forbidden', 'no', 'x')),
      failure(new TransportError('deadline', 'away')),
      failure(apiError(409, 'Conflict', 'old', 'x')),
    ];
    expect(mostUrgent([refused, away])).to.equal(away);
    expect(mostUrgent([refused, away, stale])).to.equal(stale);
    expect(mostUrgent([])).to.equal(undefined);
  });

  it('has the server’s words for users where a claim is refused for good', () => {
    const forbidden = apiError(403, 'Forbidden', 'quota is exceeded', 'vm1.data');
    expect(rejectionOf({ action: { kind: 'create', claim: claim(), reason: '' }, error: forbidden })).to.match(
      /^IPAMClaim vms\/vm1\.data is refused by the API server: .*quota is exceeded$/,
    );
    expect(rejectionOf({ action: update(stored), error: forbidden })).to.equal(undefined);
    expect(rejectionOf({ action: release(stored), error: apiError(409, 'Conflict', '', '') })).to.equal(undefined);
  });
});
