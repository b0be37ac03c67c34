import { expect } from 'chai';
import { NETWORK_DATA_WRITTEN } from '../../api/names.js';
import type { Sync, SyncResult } from '../../kube/controller-loop.js';
import { ADDRESS_LEASES } from '../../kube/resources.js';
import { apiError } from '../../test/api-errors.js';
import { MAC, ReconcilerWorld, UID_LABEL, runSync } from '../testing/reconciler-world.js';

describe('the Secret with the network data of a VM', () => {
  let world: ReconcilerWorld;
  let run: Sync;

  beforeEach(() => {
    world = ReconcilerWorld.withLeasedVm();
    run = world.reconciler().createSync();
  });

  const sync = (key?: string): Promise<SyncResult> => runSync(run, key);

  it('takes over a Secret that was restored from a backup, and removes its data before the claim has its address', async () => {
    world.deleteAll(ADDRESS_LEASES);
    world.restoreSecret('10.1.0.99');
    await sync();
    expect(world.textOfSecret).to.equal('');
    expect(world.secret?.metadata.labels).to.include({ [UID_LABEL]: 'vm-uid' });
    world.addLease('10.1.0.5', world.claims.get('vms/vm1.data')!);
    await sync();
    expect(world.textOfSecret).to.include('10.1.0.5/24');
  });

  it('has no data while the pool of an address that its claim shows is not known, and it gets no other configuration', async () => {
    const pool = world.pools.get('data')!;
    world.pools.delete('data');
    world.directory.changed();
    await sync();
    expect(world.textOfSecret).to.equal('');
    world.pools.set(pool);
    world.directory.changed();
    await sync();
    expect(world.textOfSecret).to.include('10.1.0.5/24');
  });

  const emptied: { name: string; act: () => void }[] = [
    { name: 'an interface without a MAC address is added', act: () => world.addVm('vm1', { macs: [MAC, undefined] }) },
    { name: 'the claim has no address any more', act: () => void world.addClaim('data', []) },
    {
      name: 'the claim shows an address that is not leased to it',
      act: () => void world.addClaim('data', ['10.1.0.9/24']),
    },
    { name: 'the VM opts out', act: () => world.addVm('vm1', { annotation: '' }) },
    { name: 'the annotation names another Secret', act: () => world.addVm('vm1', { annotation: 'other' }) },
    {
      name: 'an older VM names it',
      act: () => world.addVm('vm0', { uid: 'vm0-uid', created: '2025-01-01T00:00:00Z' }),
    },
    { name: 'the VM names another Secret', act: () => world.addVm('vm1', { secret: 'next' }) },
  ];
  for (const { name, act } of emptied) {
    it(`removes the data from the Secret if ${name}, once`, async () => {
      await sync();
      expect(world.textOfSecret).to.include('10.1.0.5/24');
      act();
      await sync();
      expect(world.textOfSecret).to.equal('');
      const { length } = world.requests.filter((each) => each.includes('secrets'));
      await sync();
      expect(world.requests.filter((each) => each.includes('secrets'))).to.have.length(length);
    });
  }

  it('removes data that an earlier term wrote, and writes it again when all addresses are known', async () => {
    await sync();
    run = world.reconciler().createSync();
    world.addVm('vm1', { macs: [MAC, undefined] });
    await sync();
    expect(world.textOfSecret).to.equal('');
    world.addVm('vm1');
    await sync();
    expect(world.textOfSecret).to.include('10.1.0.5/24');
    run = world.reconciler().createSync();
    world.addVm('vm1', { annotation: '' });
    await sync();
    expect(world.textOfSecret).to.equal('');
  });

  it('tries again to remove the data after a failure', async () => {
    await sync();
    world.addVm('vm1', { annotation: '' });
    world.failure = apiError(500, 'InternalError', 'etcd', 'net');
    await sync().then(
      () => expect.fail('the failure is not reported'),
      (error: unknown) => expect(String(error)).to.include('etcd'),
    );
    expect(world.textOfSecret).to.include('10.1.0.5/24');
    world.failure = undefined;
    await sync();
    expect(world.textOfSecret).to.equal('');
  });

  // 400: a webhook that names no code, such as Kyverno's
  for (const status of [400, 403]) {
    it(`says in the condition why the API server rejects the Secret with ${status}`, async () => {
      const message = 'admission webhook "policy.example.com" denied the request: label team is absent';
      world.denial = apiError(status, '', message, 'net');
      await sync();
      const condition = world.condition(NETWORK_DATA_WRITTEN);
      expect(condition).to.include({ status: 'False', reason: 'SecretRejected' });
      expect(condition?.message).to.include('Secret net cannot be written').and.include(message);
    });
  }

  it('removes data of a write that the API server carried out without an answer', async () => {
    const error = apiError(500, 'InternalError', 'no answer', 'net');
    world.api.before = ({ method }) => (method === 'POST' ? { error, applied: true } : undefined);
    await sync().catch(() => undefined);
    expect(world.textOfSecret).to.include('10.1.0.5/24');
    world.addVm('vm1', { annotation: '' });
    await sync();
    expect(world.textOfSecret).to.equal('');
  });

  it('is written again when a removal of its data without an answer cannot arrive any more', async () => {
    await sync();
    world.addVm('vm1', { annotation: '' });
    world.api.before = world.loseNext('PATCH', 'secrets');
    await sync().catch(() => undefined);
    world.addVm('vm1');
    expect(await sync()).to.deep.equal({ requeueAfterMs: 60_000 });
    world.arrive();
    expect(world.textOfSecret).to.equal('');
    world.now += 60_000;
    expect(await sync()).to.equal(undefined);
    expect(world.textOfSecret).to.include('10.1.0.5/24');
  });

  it('replaces the data although a quota for Secrets is full', async () => {
    await sync();
    const message = 'exceeded quota: few, requested: secrets=1, used: secrets=1, limited: secrets=1';
    world.denial = apiError(403, 'Forbidden', message, 'net');
    run = world.reconciler().createSync();
    await sync();
    expect(world.condition(NETWORK_DATA_WRITTEN)).to.include({ status: 'True' });
    expect(world.textOfSecret).to.include('10.1.0.5/24');
  });

  it('says in the condition why the data cannot be removed, and tries again', async () => {
    await sync();
    world.failure = apiError(422, 'Invalid', 'data: field is immutable when `immutable` is set', 'net');
    world.addVm('vm1', { macs: [MAC, undefined] });
    expect(await sync()).to.deep.equal({ requeueAfterMs: 30_000 });
    const condition = world.condition(NETWORK_DATA_WRITTEN);
    expect(condition).to.include({ status: 'False', reason: 'SecretRejected' });
    expect(condition?.message).to.include('field is immutable');
    world.failure = undefined;
    await sync();
    expect(world.textOfSecret).to.equal('');
    expect(world.condition(NETWORK_DATA_WRITTEN)).to.include({ reason: 'MACAddressMissing' });
  });
});
