import { expect } from 'chai';
import type { Sync, SyncResult } from '../../kube/controller-loop.js';
import { TransportError } from '../../kube/errors.js';
import { ADDRESS_LEASES } from '../../kube/resources.js';
import { apiError } from '../../test/api-errors.js';
import { ReconcilerWorld, runSync } from '../testing/reconciler-world.js';
import { UnansweredWrites } from './secret.js';
import type { WorkloadReconciler } from '../workload-reconciler.js';

const IMMUTABLE = apiError(422, 'Invalid', 'data: field is immutable when `immutable` is set', 'net');

describe('the locks of the addresses in a Secret with network data', () => {
  let world: ReconcilerWorld;
  let reconciler: WorkloadReconciler;
  let run: Sync;

  beforeEach(() => {
    world = ReconcilerWorld.withLeasedVm();
    reconciler = world.reconciler();
    run = reconciler.createSync();
  });

  const sync = (): Promise<SyncResult> => runSync(run);

  function locks(): unknown[] {
    return [...world.leases.values()].map(({ spec }) => spec.networkData?.secret);
  }

  function writes(): string[] {
    return world.requests.splice(0).filter((each) => !each.includes('ipamclaims'));
  }

  it('are set before the Secret is written, and once', async () => {
    await sync();
    expect(writes()).to.deep.equal(['patch addressleases data.10-1-0-5', 'patch secrets net', 'create secrets net']);
    world.addVmi('next-start', undefined);
    await sync();
    expect(writes()).to.deep.equal(['patch secrets net']);
    expect(locks()).to.deep.equal(['net']);
  });

  it('are read, set and removed by requests that wait only for those of the same namespace', async () => {
    await sync();
    world.addVm('vm1', { annotation: '' });
    await sync();
    const ofLeases = world.api.requests.filter(({ path }) => path.includes('/addressleases/'));
    expect(ofLeases.map(({ tenant }) => tenant)).to.deep.equal(Array(4).fill('vms'));
  });

  const released: Record<string, () => void> = {
    'the VM opts out': () => world.addVm('vm1', { annotation: '' }),
    'the VM is deleted': () => void world.vms.delete('vms/vm1'),
    'the VM was replaced by another one of its name': () => world.addVm('vm1', { uid: 'next-uid', annotation: '' }),
    'the VM names another Secret and none is asked for': () => world.addVm('vm1', { secret: 'next', annotation: '' }),
  };
  for (const [name, act] of Object.entries(released)) {
    it(`are removed after the text if ${name} while no leader runs`, async () => {
      await sync();
      writes();
      run = world.reconciler().createSync();
      act();
      await sync();
      expect(world.textOfSecret).to.equal('');
      expect(locks()).to.deep.equal([undefined]);
      expect([...new Set(writes().filter((each) => !each.includes('next')))]).to.deep.equal([
        'patch secrets net',
        'patch addressleases data.10-1-0-5',
      ]);
    });
  }

  it('stay while the text cannot be removed, and then no other address is locked', async () => {
    await sync();
    world.failure = IMMUTABLE;
    const claim = world.addClaim('data', ['10.1.0.6/24']);
    world.addLease('10.1.0.6', claim);
    await sync();
    expect(locks()).to.deep.equal(['net', undefined]);
    world.failure = undefined;
    await sync();
    expect(locks()).to.deep.equal([undefined, 'net']);
    expect(world.textOfSecret).to.include('10.1.0.6/24').and.not.to.include('10.1.0.5');
  });

  it('are removed with the VM although somebody made its Secret immutable, which would keep the addresses for ever', async () => {
    await sync();
    world.failure = IMMUTABLE;
    void world.vms.delete('vms/vm1');
    await sync();
    expect(locks()).to.deep.equal([undefined]);
  });

  it('are taken as removed if the cache shows one that was removed, and the text is not touched again', async () => {
    await sync();
    const shown = [...world.leases.values()];
    world.addVm('vm1', { annotation: '' });
    await sync();
    writes();
    world.shownLeases = shown;
    await sync();
    expect(writes()).to.deep.equal([]);
  });

  it('are removed without touching the text if the cache shows one only after the text was replaced by another address', async () => {
    await sync();
    const [name, former] = [...world.leases][0]!;
    world.tracker.put(ADDRESS_LEASES, { ...former, spec: { ...former.spec, releasedAt: '2026-01-01T00:00:00Z' } });
    world.addLease('10.1.0.6', world.addClaim('data', ['10.1.0.6/24']));
    world.shownLeases = [];
    await sync();
    expect(world.textOfSecret).to.include('10.1.0.6/24');
    writes();
    world.shownLeases = undefined;
    await sync();
    expect(writes()).to.deep.equal([`patch addressleases ${name}`]);
    expect(world.textOfSecret).to.include('10.1.0.6/24');
    expect(locks()).to.deep.equal([undefined, 'net']);
  });

  it('stay until the text is removed if nobody knows whether it was replaced by another address', async () => {
    await sync();
    const [name, former] = [...world.leases][0]!;
    world.tracker.put(ADDRESS_LEASES, { ...former, spec: { ...former.spec, releasedAt: '2026-01-01T00:00:00Z' } });
    world.addLease('10.1.0.6', world.addClaim('data', ['10.1.0.6/24']));
    world.shownLeases = [];
    world.failure = apiError(500, 'InternalError', 'no answer', 'net');
    await sync().catch(() => undefined);
    world.failure = undefined;
    world.shownLeases = undefined;
    writes();
    await sync();
    expect(writes()).to.deep.equal(['patch secrets net']);
    world.now += 60_000;
    await sync();
    expect(writes().slice(0, 2)).to.deep.equal(['patch secrets net', `patch addressleases ${name}`]);
    expect(world.textOfSecret).to.include('10.1.0.6/24');
  });

  it('stay as long as a write of the text without an answer may arrive, and the text is removed again then', async () => {
    world.api.before = world.loseNext('POST');
    await sync().catch(() => undefined);
    run = reconciler.createSync(); // it loses its Lease, and leads again
    world.addVm('vm1', { annotation: '' });
    expect(await sync()).to.deep.equal({ requeueAfterMs: 60_000 });
    expect(locks()).to.deep.equal(['net']);
    world.arrive();
    expect(world.textOfSecret).to.include('10.1.0.5/24');
    world.now += 60_000;
    await sync();
    expect(world.textOfSecret).to.equal('');
    expect(locks()).to.deep.equal([undefined]);
  });

  it('are set again if the VM wants the address again before its unlock without an answer may arrive', async () => {
    await sync();
    world.addVm('vm1', { annotation: '' });
    world.api.before = world.loseNext('PATCH', 'addressleases');
    await sync().catch(() => undefined);
    run = reconciler.createSync();
    world.addVm('vm1');
    await sync();
    expect(world.textOfSecret).to.include('10.1.0.5/24');
    world.arrive();
    expect(locks()).to.deep.equal(['net']);
  });

  it('are left alone once an unlock without an answer can no longer arrive', async () => {
    await sync();
    world.addVm('vm1', { annotation: '' });
    world.api.before = world.loseNext('PATCH', 'addressleases');
    await sync().catch(() => undefined);
    world.now += 60_000;
    world.addVm('vm1');
    writes();
    await sync();
    expect(writes()).to.deep.equal(['patch secrets net']);
    expect(locks()).to.deep.equal(['net']);
  });

  it('leave nothing in memory of unlocks that can no longer arrive, such as those of leases that are gone', async () => {
    let now = 0;
    const unanswered = new UnansweredWrites({ now: () => now });
    for (; now < 1_000_000; now += 1_000)
      await unanswered
        .answerOf(`lease ${now}`, Promise.reject(new TransportError('broken', 'lost')))
        .catch(() => undefined);
    expect(unanswered.size).to.equal(60);
    expect(unanswered.remainingMs('lease 999000')).to.equal(59_000);
  });

  it('must be kept by the API server, or nothing is written into the Secret', async () => {
    const serve = world.api.serve.bind(world.api);
    world.api.serve = (request) => {
      const answer = serve(request) as object;
      return request.method === 'PATCH' ? { ...answer, spec: {} } : answer;
    };
    await sync().then(
      () => expect.fail('the missing lock is not reported'),
      (error: unknown) => expect(String(error)).to.include('apply the CRDs of this release'),
    );
    expect(world.textOfSecret).to.equal('');
  });
});
