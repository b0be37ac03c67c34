import { expect } from 'chai';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import { apiError } from '../../test/api-errors.js';
import { ClaimsWorld } from './testing/model/world.js';
import { WorldApi } from './testing/model/world-api.js';
import { claim, vmReference } from '../../test/objects/workload-objects.js';
import { Client } from '../../kube/client.js';
import { TransportError, classifyError } from '../../kube/errors.js';
import type { Action } from './plan/action.js';
import { applyAll, failureEventOf, mostUrgent } from './apply.js';

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

  function update(claim: IPAMClaim): Action {
    const owner = { kind: 'VirtualMachine' as const, name: 'vm1', uid: 'vm-uid' };
    return { kind: 'update', claim, owner, set: { annotations: { note: 'new' }, interface: 'net1' }, reason: 'test' };
  }

  async function errorsOf(...actions: Action[]): Promise<string[]> {
    return (await applyAll(actions, client)).map(({ error }) => classifyError(error));
  }

  it('changes only the planned fields of a claim', async () => {
    world.update('claims', KEY, (copy) => Object.assign(copy.metadata, { labels: { theirs: 'yes' } }));
    expect(await errorsOf(update(world.get('claims', KEY)!))).to.deep.equal([]);
    const after = world.get('claims', KEY)!;
    expect(after.metadata.annotations).to.deep.equal({ ...stored.metadata.annotations, note: 'new' });
    expect(after.metadata.labels).to.deep.equal({ theirs: 'yes' });
    expect(after.spec).to.deep.equal({ network: 'blue-net', interface: 'net1' });
  });

  it('does not update a claim that has changed since it was read', async () => {
    world.update('claims', KEY, ({ spec }) => Object.assign(spec, { interface: 'other' }));
    expect(await errorsOf(update(stored))).to.deep.equal(['stale']);
    expect(world.get('claims', KEY)?.metadata.annotations).to.not.have.property('note');
  });

  /** Lets everything happen that does not wait for an answer. */
  const settle = () => new Promise<void>((resolve) => setImmediate(resolve));

  it('writes a few claims of a workload at the same time, and then the others', async () => {
    const waiting: (() => void)[] = [];
    api.before = () => new Promise<void>((resolve) => waiting.push(resolve));
    const actions = Array.from({ length: 32 }, () => update(stored));
    const applied = applyAll(actions, client);
    await settle();
    expect(waiting).to.have.length(4);
    for (let answered = 0; answered < 32; answered++) {
      waiting.shift()!();
      await settle();
    }
    // the first one changed the claim
    expect(await applied).to.have.length(31);
  });

  it('deletes a released claim before it removes our finalizer', async () => {
    expect(await errorsOf(release(stored))).to.deep.equal([]);
    expect(world.get('claims', KEY)).to.equal(undefined);
    expect(api.seen).to.deep.equal(['DELETE claims vm1.data', 'PATCH claims vm1.data']);
  });

  it('only removes the finalizer of a claim that is being deleted already', async () => {
    world.delete('claims', KEY);
    expect(await errorsOf(release(world.get('claims', KEY)!))).to.deep.equal([]);
    expect(world.get('claims', KEY)).to.equal(undefined);
    expect(api.seen).to.deep.equal(['PATCH claims vm1.data']);
  });

  it('finishes the release if the garbage collector deleted the claim first', async () => {
    world.delete('claims', KEY);
    expect(await errorsOf(release(stored))).to.deep.equal([]);
    expect(world.get('claims', KEY)).to.equal(undefined);
  });

  it('succeeds if the released claim is gone already', async () => {
    world.dropFinalizers('claims', KEY, 'kubevirt.io/persistent-ipam');
    world.delete('claims', KEY);
    expect(await errorsOf(release(stored))).to.deep.equal([]);
  });

  it('does not change another claim of the same name', async () => {
    world.dropFinalizers('claims', KEY, 'kubevirt.io/persistent-ipam');
    world.delete('claims', KEY);
    const other = create(claim());
    expect(await errorsOf(release(stored))).to.deep.equal([]);
    expect(world.get('claims', KEY)).to.deep.equal(other);
  });

  it('does not delete a claim that changed after the plan was made', async () => {
    world.update('claims', KEY, ({ metadata }) =>
      Object.assign(metadata, { ownerReferences: [vmReference('new-uid')] }),
    );
    expect(await errorsOf(release(stored))).to.deep.equal(['stale']);
    expect(world.get('claims', KEY)?.metadata.deletionTimestamp).to.equal(undefined);
  });

  it('does not remove the finalizer of a claim that has another owner now', async () => {
    world.update('claims', KEY, ({ metadata }) =>
      Object.assign(metadata, { ownerReferences: [vmReference('new-uid')] }),
    );
    world.delete('claims', KEY);
    expect(await errorsOf(release(stored))).to.deep.equal(['stale']);
    expect(world.get('claims', KEY)?.metadata.finalizers).to.deep.equal(['kubevirt.io/persistent-ipam']);
  });

  it('does not remove the finalizer of a claim that changed after the plan was made', async () => {
    world.delete('claims', KEY);
    const seen = world.get('claims', KEY)!;
    world.update('claims', KEY, ({ metadata }) =>
      Object.assign(metadata, { ownerReferences: [vmReference('new-uid')] }),
    );
    expect(await errorsOf(release(seen))).to.deep.equal(['stale']);
    expect(world.get('claims', KEY)?.metadata.finalizers).to.deep.equal(['kubevirt.io/persistent-ipam']);
  });

  it('does not remove the finalizer of a claim that changed after it was deleted', async () => {
    api.before = ({ method }) => {
      if (method !== 'PATCH') return;
      world.update('claims', KEY, (copy) => Object.assign(copy, { status: { ownerPod: { name: 'launcher' } } }));
    };
    expect(await errorsOf(release(stored))).to.deep.equal(['stale']);
    expect(world.get('claims', KEY)?.metadata.finalizers).to.deep.equal(['kubevirt.io/persistent-ipam']);
  });

  it('retries with a conflict if the finalizers differ from those that were read', async () => {
    world.delete('claims', KEY);
    const seen = world.get('claims', KEY)!;
    world.update('claims', KEY, ({ metadata }) => metadata.finalizers?.unshift('other'));
    expect(await errorsOf(release(seen))).to.deep.equal(['stale']);
    expect(world.get('claims', KEY)?.metadata.finalizers).to.deep.equal(['other', 'kubevirt.io/persistent-ipam']);
  });

  it('creates the successor as soon as the released claim is gone', async () => {
    expect(await errorsOf(release(stored, { ...claim({ ips: ['10.0.0.5/24'] }) }))).to.deep.equal([]);
    expect(world.get('claims', KEY)?.metadata.uid).to.not.equal(stored.metadata.uid);
    expect(api.seen.at(-1)).to.equal('POST claims');
  });

  it('retries if finalizers of others block the creation of the successor', async () => {
    world.update('claims', KEY, ({ metadata }) => metadata.finalizers?.push('other'));
    expect(await errorsOf(release(world.get('claims', KEY)!, claim()))).to.deep.equal(['stale']);
    expect(world.get('claims', KEY)?.metadata.finalizers).to.deep.equal(['other']);
  });

  it('leaves a claim whose release the next sync can finish after a crash between delete and patch', async () => {
    api.before = ({ method }) => {
      if (method === 'PATCH') throw new TransportError('broken', 'crashed');
    };
    expect(await errorsOf(release(stored))).to.deep.equal(['transient']);
    const left = world.get('claims', KEY)!;
    expect(left.metadata.deletionTimestamp).to.be.a('string');
    expect(left.metadata.finalizers).to.deep.equal(['kubevirt.io/persistent-ipam']);
  });

  it('continues after an action that fails, and writes nothing for actions that only give a reason', async () => {
    const taken: Action = { kind: 'create', claim: claim(), reason: 'test' };
    const free: Action = { kind: 'create', claim: claim({ name: 'vm1.extra' }), reason: 'test' };
    const wait: Action = { kind: 'wait', claimName: 'vm1.data', reason: 'test' };
    expect(await errorsOf(taken, wait, free)).to.deep.equal(['stale']);
    expect(world.get('claims', 'vms/vm1.extra')).to.not.equal(undefined);
    expect(api.seen).to.deep.equal(['POST claims', 'POST claims']);
  });

  it('retries as early as the most urgent of several errors requires', () => {
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

  it('returns the API server’s message for users if a claim is refused permanently', () => {
    const forbidden = apiError(403, 'Forbidden', 'not in this namespace', 'vm1.data');
    const create = { action: { kind: 'create', claim: claim(), reason: '' } as const, error: forbidden };
    expect(failureEventOf(create, 0)?.message).to.match(
      /^The API server rejected IPAMClaim vms\/vm1\.data: .*not in this namespace$/,
    );
    // a webhook that names no code, such as Kyverno's
    const denied = apiError(400, 'BadRequest', 'admission webhook "x" denied the request: no label', 'vm1.data');
    expect(failureEventOf({ ...create, error: denied }, 0)).to.include({ reason: 'IPAMClaimRefused' });
    expect(failureEventOf({ action: update(stored), error: denied }, 0)).to.deep.equal({
      reason: 'IPAMClaimRefused',
      message: `The API server rejected a change of IPAMClaim ${KEY}: ${denied.message}`,
    });
    const outdated = { action: release(stored), error: apiError(409, 'Conflict', '', '') };
    expect(failureEventOf(outdated, 60_000)).to.equal(undefined);
  });
});
