import { expect } from 'chai';
import type { Sync, SyncResult } from '../../kube/controller-loop.js';
import { ReconcilerWorld, UID_LABEL, runSync } from '../testing/reconciler-world.js';

const STALE = '10.1.0.99';

describe('the Secret of a VM that leaves it to its pool whether it has network data', () => {
  let world: ReconcilerWorld;
  let run: Sync;

  beforeEach(() => {
    world = new ReconcilerWorld();
    world.addNetwork('data', [{ cidr: '10.1.0.0/24' }], { networkData: { default: true } });
    world.addVm('vm1', { annotation: null });
    run = world.reconciler().createSync();
  });

  const sync = (): Promise<SyncResult> => runSync(run);

  function ownerOfSecret(): string | undefined {
    return world.secret?.metadata.labels?.[UID_LABEL];
  }

  it('loses the data of a backup before the claim exists, and gets that of the claim', async () => {
    world.restoreSecret(STALE);
    await sync();
    expect(world.textOfSecret).to.equal('');
    world.addLease('10.1.0.5', world.addClaim('data', ['10.1.0.5/24']));
    await sync();
    expect(world.textOfSecret).to.include('10.1.0.5/24');
  });

  it('loses the data of a backup that is restored after the VM when the VM starts, although the claim does not exist', async () => {
    await sync();
    world.restoreSecret(STALE);
    world.addVmi('vmi-1', undefined);
    await sync();
    expect(world.textOfSecret).to.equal('');
  });

  it('loses its data if the claim is deleted while no leader runs', async () => {
    world.addLease('10.1.0.5', world.addClaim('data', ['10.1.0.5/24']));
    await sync();
    expect(world.textOfSecret).to.include('10.1.0.5/24');
    world.claims.delete('vms/vm1.data');
    run = world.reconciler().createSync();
    await sync();
    expect(world.textOfSecret).to.equal('');
  });

  it('is not created while the claim does not exist, and is tried once', async () => {
    await sync();
    await sync();
    expect([...world.secrets]).to.deep.equal([]);
    expect(world.requests).to.deep.equal(['patch secrets net']);
  });

  it('is left alone if the VM opts out, or no claim is expected', async () => {
    world.restoreSecret(STALE);
    world.addVm('vm1', { annotation: '' });
    await sync();
    world.addVm('vm1', { annotation: null });
    world.addNad('data', { name: 'data', type: 'bridge' });
    await sync();
    expect(world.requests).to.deep.equal([]);
  });

  it('is not taken over before the claim exists if another VM requests it', async () => {
    world.restoreSecret(STALE);
    world.addVm('vm2', { uid: 'vm2-uid', created: '2026-02-01T00:00:00Z' });
    await sync();
    expect(ownerOfSecret()).to.equal('former');
    await runSync(run, 'vms/vm2');
    expect(ownerOfSecret()).to.equal('vm2-uid');
    expect(world.textOfSecret).to.equal('');
  });
});
