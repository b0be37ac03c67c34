import { expect } from 'chai';
import type { AddressLease } from '../../api/address-lease.js';
import { CLAIM_OWNER_NAME, CLAIM_OWNER_UID, CLAIM_REQUESTED_ADDRESSES } from '../../api/names.js';
import { StatusError, TransportError } from '../../kube/errors.js';
import { setPool } from './testing/model/pools.js';
import { ClaimSyncScenario } from './testing/model/claim-sync-scenario.js';

describe('syncing a claim', () => {
  let scene: ClaimSyncScenario;

  beforeEach(() => {
    scene = new ClaimSyncScenario();
  });

  it('costs one write of a lease and one of the status, and nothing after that', async () => {
    scene.create('a');
    const { result, requests } = await scene.sync('a');
    expect(result).to.equal(undefined);
    expect(requests).to.deep.equal(['POST addressleases', 'PATCH ipamclaims a status']);
    // sync again before the cache shows the writes
    await scene.process.sync('vms/a');
    expect((await scene.sync('a')).requests).to.deep.equal([]);
    expect(scene.claim('a').status).to.deep.equal({
      ips: ['10.0.0.2/29'],
      conditions: [
        {
          type: 'IPsAllocated',
          status: 'True',
          reason: 'SuccessfulAllocation',
          message: 'Leased from AddressPool blue',
          lastTransitionTime: '2026-01-01T00:00:01Z',
        },
      ],
    });
    expect(scene.process.events).to.deep.equal([]);
  });

  it('leases an address of each family, IPv4 first', async () => {
    setPool(scene.cluster.world, 'dual');
    scene.create('a');
    await scene.sync('a');
    expect(scene.claim('a').status?.ips).to.deep.equal(['10.0.0.2/29', '2001:db8::1/126']);
  });

  it('creates no second lease if the answer to the first write is lost', async () => {
    scene.create('a');
    scene.failRequest(0, { error: new TransportError('broken', 'the connection broke'), applied: true });
    const { requests } = await scene.sync('a');
    const expected = ['POST addressleases', 'GET addressleases blue.10-0-0-2', 'PATCH ipamclaims a status'];
    expect(requests).to.deep.equal(expected);
    expect(scene.leases).to.deep.equal(['10.0.0.2']);
  });

  it('picks another address if another writer was faster', async () => {
    scene.create('a');
    scene.create('b');
    // this process knows neither the lease nor the status
    scene.laggingProcess.deliver('ipamclaims', Infinity);
    await scene.sync('a');
    const from = scene.cluster.api.seen.length;
    await scene.laggingProcess.sync('vms/b');
    expect(scene.cluster.api.seen.slice(from)).to.deep.equal([
      'POST addressleases',
      'GET addressleases blue.10-0-0-2',
      'POST addressleases',
      'PATCH ipamclaims b status',
    ]);
    expect([scene.ipsOf('a'), scene.ipsOf('b')]).to.deep.equal([['10.0.0.2'], ['10.0.0.3']]);
  });

  it('finds the lease that another process has created for the claim, and shows it', async () => {
    scene.create('a');
    scene.request('a', '["10.0.0.5"]');
    scene.laggingProcess.deliver('ipamclaims', Infinity);
    await scene.sync('a');
    await scene.laggingProcess.sync('vms/a');
    expect(scene.leases).to.deep.equal(['10.0.0.5']);
    expect(scene.ipsOf('a')).to.deep.equal(['10.0.0.5']);
  });

  it('follows a claim that was changed since it was cached, and keeps the allocated address', async () => {
    scene.create('a');
    scene.process.deliverAll();
    scene.request('a', '["10.0.0.2"]');
    await scene.process.sync('vms/a');
    expect(scene.ipsOf('a')).to.deep.equal(['10.0.0.2']);
    expect(scene.leases).to.deep.equal(['10.0.0.2']);
  });

  it('allocates for a claim whose status another IPAM wrote without addresses', async () => {
    scene.create('a');
    scene.cluster.world.update('ipamclaims', 'vms/a', (claim) => void (claim.status = { conditions: [] }));
    await scene.sync('a');
    expect(scene.ipsOf('a')).to.deep.equal(['10.0.0.2']);
  });

  it('releases the lease that it has just created if a live read shows that the claim is gone', async () => {
    scene.create('a', { owned: true });
    scene.process.deliverAll();
    scene.finish('a');
    await scene.process.sync('vms/a');
    const spec = scene.cluster.world.list('addressleases')[0]?.spec;
    expect(spec?.releasedAt, 'another process may have shown it').to.be.a('string');
  });

  it('releases an address with cool-down if another process has shown it before the claim was gone', async () => {
    scene.create('a', { owned: true });
    scene.process.deliverAll();
    scene.interruptRequest(1, async () => {
      scene.laggingProcess.deliverAll();
      await scene.laggingProcess.sync('vms/a');
      scene.finish('a');
    });
    await scene.process.sync('vms/a');
    expect(scene.cluster.world.list('addressleases')[0]?.spec.releasedAt).to.be.a('string');
  });

  it('releases nothing if the API server does not serve claims', async () => {
    scene.create('a');
    await scene.sync('a');
    scene.finish('a');
    const unserved = { request: 'GET', status: 404, reason: 'NotFound', message: 'page not found' };
    scene.failRequest(0, { error: new StatusError(unserved), applied: false });
    const error: unknown = await scene.sync('a').catch((thrown: unknown) => thrown);
    expect(error).to.be.instanceOf(StatusError);
    expect(scene.cluster.world.list('addressleases')[0]?.spec.releasedAt).to.equal(undefined);
    await scene.sync('a');
    expect(scene.cluster.world.list('addressleases')[0]?.spec.releasedAt).to.be.a('string');
  });

  it('releases nothing of a claim that was created after the live read found none', async () => {
    scene.create('a');
    await scene.sync('a');
    scene.finish('a');
    scene.process.deliverAll();
    // this process has read the claim and is about to release, while another one serves the next claim of that name
    scene.interruptRequest(1, async () => {
      scene.create('a');
      scene.laggingProcess.deliverAll();
      await scene.laggingProcess.sync('vms/a');
      scene.process.deliver('addressleases', Infinity);
    });
    await scene.process.sync('vms/a');
    expect(scene.heldBy('a')).to.deep.equal(scene.ipsOf('a'));
    expect(scene.heldBy('a')).to.have.lengthOf(1);
  });

  it('gives the next claim of the same VM its address back before it has cooled down', async () => {
    scene.create('a', { owned: true });
    await scene.sync('a');
    scene.finish('a');
    scene.create('a', { owned: true, request: '["10.0.0.2/29"]' });
    await scene.sync('a');
    expect(scene.ipsOf('a')).to.deep.equal(['10.0.0.2']);
    expect(scene.heldBy('a')).to.have.lengthOf(1);
  });

  // 400: a webhook that names no code, such as Kyverno's
  for (const status of [400, 403]) {
    it(`reports the API server's message if a lease is rejected with ${status}, and tries again later`, async () => {
      scene.create('a');
      const refusal = { request: 'POST', status, reason: '', message: 'no label' };
      scene.failRequest(0, { error: new StatusError(refusal), applied: false });
      const { result } = await scene.sync('a');
      expect(result).to.deep.equal({ requeueAfterMs: 60_000 });
      expect(scene.reasonOf('a')).to.equal('InternalError');
      expect(scene.claim('a').status?.ips).to.deep.equal([]);
      const [event] = scene.process.events;
      expect(event).to.match(/^Warning IPAMClaim AddressesNotAllocated: InternalError: .*no label/);
    });
  }

  it('writes the status once if every lease is rejected, and at most once a minute after that', async () => {
    let count = 0;
    scene.cluster.api.before = ({ method }) => {
      const refusal = { request: 'POST', status: 403, reason: 'Forbidden', message: `lease ${count++} is denied` };
      return method === 'POST' ? { error: new StatusError(refusal), applied: false } : undefined;
    };
    scene.create('a');
    const writes = async () => (await scene.sync('a')).requests.filter((request) => request.startsWith('PATCH')).length;
    expect([await writes(), await writes(), await writes()]).to.deep.equal([1, 0, 0]);
    scene.cluster.world.now += 60_000;
    expect([await writes(), await writes()]).to.deep.equal([1, 0]);
    expect(scene.process.events).to.have.lengthOf(1);
  });

  it('releases the lease of one family if the other family is full', async () => {
    setPool(scene.cluster.world, 'dual');
    scene.create('a');
    const refusal = { request: 'POST', status: 403, reason: 'Forbidden', message: 'no' };
    scene.failRequest(1, { error: new StatusError(refusal), applied: false });
    await scene.sync('a');
    expect(scene.cluster.world.list('addressleases').map(({ spec }) => typeof spec.releasedAt)).to.deep.equal([
      'string',
    ]);
    expect(scene.claim('a').status?.ips).to.deep.equal([]);
  });

  it('reads the lease to learn its owner if the answer to a write is lost', async () => {
    scene.create('a');
    scene.failRequest(0, { error: new TransportError('deadline', 'no answer in time'), applied: false });
    const error: unknown = await scene.sync('a').catch((thrown: unknown) => thrown);
    expect(error).to.be.instanceOf(TransportError);
    expect(scene.leases).to.deep.equal([]);
    await scene.cluster.settle();
    expect(scene.ipsOf('a')).to.have.lengthOf(1);
  });

  it('skips an address whose lease is unreadable, and tries it again after a while', async () => {
    const { world } = scene.cluster;
    const spec = { address: 'nonsense' } as unknown as AddressLease['spec'];
    world.create('addressleases', { metadata: { name: 'blue.10-0-0-4' }, spec });
    scene.create('a', { request: '["10.0.0.4"]' });
    scene.process.deliver('ipamclaims', Infinity);
    await scene.syncWithoutNews('a');
    expect(scene.claim('a').status?.ips).to.deep.equal([]);
    world.remove('addressleases', 'blue.10-0-0-4');
    const { requests } = await scene.syncWithoutNews('a');
    expect(requests.filter((request) => request.startsWith('POST'))).to.deep.equal([]);
    world.now += 60_000;
    await scene.syncWithoutNews('a');
    expect(scene.ipsOf('a')).to.deep.equal(['10.0.0.4']);
  });

  it('tries such an address again in a later term of leadership, too', async () => {
    const { world } = scene.cluster;
    const spec = { address: 'nonsense' } as unknown as AddressLease['spec'];
    world.create('addressleases', { metadata: { name: 'blue.10-0-0-4' }, spec });
    scene.create('a', { request: '["10.0.0.4"]' });
    scene.process.deliver('ipamclaims', Infinity);
    await scene.syncWithoutNews('a');
    world.remove('addressleases', 'blue.10-0-0-4');
    world.now += 60_000;
    scene.process.beginTerm();
    await scene.syncWithoutNews('a');
    expect(scene.ipsOf('a')).to.deep.equal(['10.0.0.4']);
  });

  it('does nothing for a claim while the feature gate is closed', async () => {
    scene.create('a');
    scene.cluster.isGateOpen = false;
    expect((await scene.sync('a')).requests).to.deep.equal([]);
  });

  for (const owned of [true, false]) {
    it(`passes the addresses of a claim that ${owned ? 'another' : 'a'} VM adopted to its successor`, async () => {
      const giveToVm = () =>
        scene.cluster.world.update('ipamclaims', 'vms/a', ({ metadata }) => {
          metadata.annotations = { ...metadata.annotations, [CLAIM_OWNER_NAME]: 'a', [CLAIM_OWNER_UID]: 'vm-new' };
        });
      scene.create('a', { owned, restored: ['10.0.0.4/29'] });
      await scene.cluster.settle();
      giveToVm();
      const { requests } = await scene.sync('a');
      expect(requests).to.deep.equal(['PATCH addressleases blue.10-0-0-4']);
      scene.finish('a');
      await scene.cluster.settle();
      scene.create('a', { request: '["10.0.0.4"]' });
      giveToVm();
      await scene.cluster.settle();
      expect(scene.ipsOf('a')).to.deep.equal(['10.0.0.4']);
    });
  }

  it('records in the lease the workload that it is for', async () => {
    scene.create('a', { owned: true });
    expect(scene.claim('a').metadata.annotations).to.include({ [CLAIM_OWNER_NAME]: 'a', [CLAIM_OWNER_UID]: 'vm-a' });
    expect(scene.claim('a').metadata.annotations).to.not.have.property(CLAIM_REQUESTED_ADDRESSES);
    await scene.sync('a');
    expect(scene.cluster.world.list('addressleases')[0]?.spec).to.deep.include({
      owner: {
        kind: 'IPAMClaim',
        namespace: 'vms',
        name: 'a',
        uid: scene.claim('a').metadata.uid,
        workloadUID: 'vm-a',
      },
      interface: 'net1',
    });
  });
});
