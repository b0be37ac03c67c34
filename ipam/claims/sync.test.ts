import { expect } from 'chai';
import type { AddressLease } from '../../api/address-lease.js';
import { CLAIM_OWNER_NAME, CLAIM_OWNER_UID, CLAIM_REQUESTED_ADDRESSES } from '../../api/names.js';
import { StatusError, TransportError } from '../../kube/errors.js';
import { setPool } from './testing/model/operations.js';
import { ClaimSyncScenario } from './testing/model/claim-sync-scenario.js';

describe('syncing a claim', () => {
  let scene: ClaimSyncScenario;

  beforeEach(() => {
    scene = new ClaimSyncScenario();
  });

  it('costs one lease and one status, and nothing after that', async () => {
    scene.create('a');
    const { result, requests } = await scene.sync('a');
    expect(result).to.equal(undefined);
    expect(requests).to.deep.equal(['POST addressleases', 'PATCH ipamclaims a status']);
    // the claim is synced again before the cache shows what was written
    await scene.process.sync('vms/a');
    expect((await scene.sync('a')).requests).to.deep.equal([]);
    expect(scene.claim('a').status).to.deep.equal({
      ips: ['10.0.0.2/29'],
      conditions: [
        {
          type: 'IPsAllocated',
          status: 'True',
          reason: 'SuccessfulAllocation',
          message: 'leased from AddressPool blue',
          lastTransitionTime: '2026-01-01T00:00:01Z',
        },
      ],
    });
    expect(scene.process.events).to.deep.equal([]);
  });

  it('takes a lease of each family, IPv4 first', async () => {
    setPool(scene.cluster.world, 'dual');
    scene.create('a');
    await scene.sync('a');
    expect(scene.claim('a').status?.ips).to.deep.equal(['10.0.0.2/29', '2001:db8::1/126']);
  });

  it('makes no second lease where the answer to the first is lost', async () => {
    scene.create('a');
    scene.failRequest(0, { error: new TransportError('broken', 'the connection broke'), applied: true });
    const { requests } = await scene.sync('a');
    expect(requests).to.deep.equal([
      'POST addressleases',
      'GET addressleases blue.10-0-0-2',
      'PATCH ipamclaims a status',
    ]);
    expect(scene.leases).to.deep.equal(['10.0.0.2']);
  });

  it('picks another address where somebody was faster', async () => {
    scene.create('a');
    scene.create('b');
    // it will not have heard of the lease, nor that somebody shows the address
    scene.laggingProcess.deliver('ipamclaims', Infinity);
    await scene.sync('a');
    const from = scene.cluster.api.requests.length;
    await scene.laggingProcess.sync('vms/b');
    expect(scene.cluster.api.requests.slice(from)).to.deep.equal([
      'POST addressleases',
      'GET addressleases blue.10-0-0-2',
      'POST addressleases',
      'PATCH ipamclaims b status',
    ]);
    expect([scene.ipsOf('a'), scene.ipsOf('b')]).to.deep.equal([['10.0.0.2'], ['10.0.0.3']]);
  });

  it('finds the lease that another process has made for the claim, and shows that', async () => {
    scene.create('a');
    scene.request('a', '["10.0.0.5"]');
    scene.laggingProcess.deliver('ipamclaims', Infinity);
    await scene.sync('a');
    await scene.laggingProcess.sync('vms/a');
    expect(scene.leases).to.deep.equal(['10.0.0.5']);
    expect(scene.ipsOf('a')).to.deep.equal(['10.0.0.5']);
  });

  it('follows a claim that was changed since the cache saw it, and keeps what it has taken', async () => {
    scene.create('a');
    scene.process.deliverAll();
    scene.request('a', '["10.0.0.2"]');
    await scene.process.sync('vms/a');
    expect(scene.ipsOf('a')).to.deep.equal(['10.0.0.2']);
    expect(scene.leases).to.deep.equal(['10.0.0.2']);
  });

  it('gives addresses to a claim whose status another IPAM wrote without any', async () => {
    scene.create('a');
    scene.cluster.world.update('ipamclaims', 'vms/a', (claim) => void (claim.status = { conditions: [] }));
    await scene.sync('a');
    expect(scene.ipsOf('a')).to.deep.equal(['10.0.0.2']);
  });

  it('releases at once what it has taken for a claim that is gone already, by asking for it', async () => {
    scene.create('a', { owned: true });
    scene.process.deliverAll();
    scene.finish('a');
    await scene.process.sync('vms/a');
    const spec = scene.cluster.world.list('addressleases')[0]?.spec;
    expect(spec?.releasedAt, 'another process may have shown it').to.be.a('string');
  });

  it('lets cool down what it has taken, and another process has shown before the claim was gone', async () => {
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

  it('frees nothing where the API server does not know claims any more', async () => {
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

  it('frees nothing of a claim that has come since the API server said that there is none', async () => {
    scene.create('a');
    await scene.sync('a');
    scene.finish('a');
    scene.process.deliverAll();
    // it has asked, and is about to release, while another process serves the next claim of the name
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

  it('says in the server’s words that a lease is refused, and asks again later', async () => {
    scene.create('a');
    const refusal = { request: 'POST', status: 403, reason: 'Forbidden', message: 'exceeded quota' };
    scene.failRequest(0, { error: new StatusError(refusal), applied: false });
    const { result } = await scene.sync('a');
    expect(result).to.deep.equal({ retryAfterMs: 60_000 });
    expect(scene.reasonOf('a')).to.equal('InternalError');
    expect(scene.claim('a').status?.ips).to.deep.equal([]);
    expect(scene.process.events[0]).to.match(
      /^Warning IPAMClaim AddressesNotAllocated: InternalError: .*exceeded quota/,
    );
  });

  it('gives back the one of two addresses where the other one cannot be had, as if it had never been', async () => {
    setPool(scene.cluster.world, 'dual');
    scene.create('a');
    const refusal = { request: 'POST', status: 403, reason: 'Forbidden', message: 'no' };
    scene.failRequest(1, { error: new StatusError(refusal), applied: false });
    await scene.sync('a');
    expect(scene.leases).to.deep.equal([]);
    expect(scene.claim('a').status?.ips).to.deep.equal([]);
  });

  it('asks the same of a lost answer that says nothing: whose is the lease?', async () => {
    scene.create('a');
    scene.failRequest(0, { error: new TransportError('deadline', 'no answer in time'), applied: false });
    const error: unknown = await scene.sync('a').catch((thrown: unknown) => thrown);
    expect(error).to.be.instanceOf(TransportError);
    expect(scene.leases).to.deep.equal([]);
    await scene.cluster.settle();
    expect(scene.ipsOf('a')).to.have.lengthOf(1);
  });

  it('leaves an address alone whose lease cannot be read, and looks again after a while', async () => {
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

  it('does nothing while the feature gate is closed', async () => {
    scene.create('a');
    scene.cluster.isGateOpen = false;
    expect((await scene.sync('a')).requests).to.deep.equal([]);
  });

  it('notes for whose workload a lease is', async () => {
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
