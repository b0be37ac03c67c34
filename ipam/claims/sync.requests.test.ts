import { expect } from 'chai';
import { LAUNCHER_CREATOR, NETWORKS_ANNOTATION } from '../../api/names.js';
import { VMI_OWNER } from '../../test/objects/launcher-pods.js';
import { ClaimSyncScenario } from './testing/model/claim-sync-scenario.js';

const WAIT = '. Request another address, or wait until this one is free';

describe('syncing a claim that requests another address', () => {
  let scene: ClaimSyncScenario;

  beforeEach(() => {
    scene = new ClaimSyncScenario();
  });

  beforeEach(async () => {
    scene.create('a', { owned: true });
    await scene.cluster.settle();
    scene.request('a', '["10.0.0.5"]');
  });

  it('moves the claim to the requested address, and releases the old one', async () => {
    const { requests } = await scene.sync('a');
    expect(requests).to.deep.equal([
      'GET ipamclaims a',
      'GET pods',
      'POST addressleases',
      'PATCH ipamclaims a status',
      'GET pods',
      'PATCH addressleases blue.10-0-0-2',
    ]);
    expect(scene.claim('a').status?.ips).to.deep.equal(['10.0.0.5/29']);
    expect(scene.cluster.world.get('addressleases', 'blue.10-0-0-2')?.spec.releasedAt).to.be.a('string');
  });

  it('keeps the address, and reports why, while a pod uses the claim that the cache does not show', async () => {
    scene.process.deliverAll();
    scene.cluster.operate({ do: 'startPod', name: 'a' });
    await scene.process.sync('vms/a');
    expect(scene.leases).to.deep.equal(['10.0.0.2']);
    expect(scene.claim('a').status?.ips).to.deep.equal(['10.0.0.2/29']);
    expect(scene.claim('a').status?.conditions?.[1]).to.include({ status: 'False', reason: 'ClaimInUse' });
  });

  it('moves the claim despite a pod that pretends to be its launcher but was not created by KubeVirt', async () => {
    scene.cluster.world.create('pods', {
      metadata: {
        namespace: 'vms',
        name: 'forged',
        annotations: {
          [NETWORKS_ANNOTATION]: 'blue',
          [LAUNCHER_CREATOR]: 'system:serviceaccount:vms:kubevirt-controller',
        },
        ownerReferences: [{ ...VMI_OWNER, name: 'a' }],
      },
      status: { phase: 'Pending' },
    });
    await scene.cluster.settle();
    expect(scene.claim('a').status?.ips).to.deep.equal(['10.0.0.5/29']);
  });

  it('keeps the old lease for a pod that was created meanwhile, until that pod is gone', async () => {
    scene.process.deliverAll();
    scene.cluster.api.before = ({ method }) => {
      if (method === 'POST') {
        scene.cluster.operate({ do: 'startPod', name: 'a' });
        scene.cluster.operate({ do: 'addPod', name: 'a' });
      }
      return undefined;
    };
    await scene.process.sync('vms/a');
    await scene.cluster.settle();
    expect(scene.heldBy('a')).to.have.lengthOf(2);
    scene.cluster.operate({ do: 'endPod', name: 'a' });
    await scene.cluster.settle();
    expect(scene.heldBy('a')).to.deep.equal(['10.0.0.5']);
  });

  it('keeps the current address while another claim has the requested one, and moves once it is free', async () => {
    scene.request('a', undefined);
    scene.create('b', { request: '["10.0.0.5"]' });
    await scene.cluster.settle();
    scene.request('a', '["10.0.0.5"]');
    await scene.cluster.settle();
    expect(scene.claim('a').status?.conditions?.[1]).to.deep.include({
      type: 'RequestHonoured',
      status: 'False',
      reason: 'IPAddressConflict',
      message: `10.0.0.5 is allocated to IPAMClaim vms/b${WAIT}`,
    });
    scene.finish('b');
    await scene.cluster.settle();
    await scene.cluster.coolDown();
    expect(scene.claim('a').status?.ips).to.deep.equal(['10.0.0.5/29']);
    expect(scene.claim('a').status?.conditions).to.have.lengthOf(1);
  });
});

describe('syncing a claim that requests an address which it shows and can no longer have', () => {
  it('keeps the other address, and does not lease and release the other requested address again and again', async () => {
    const scene = new ClaimSyncScenario();
    scene.cluster.operate({ do: 'pool', pool: 'dual' });
    scene.create('a');
    await scene.cluster.settle();
    const [first = '', lost = ''] = scene.ipsOf('a') ?? [];
    scene.cluster.operate({ do: 'deleteLease', index: scene.leases.indexOf(lost) });
    scene.cluster.operate({ do: 'pool', pool: 'small' });
    scene.request('a', JSON.stringify(['10.0.0.5', lost]));
    await scene.cluster.settle();
    expect(scene.reasonOf('a')).to.equal('AddressOutOfRange');
    expect(scene.heldBy('a')).to.deep.equal([first]);
    const { requests } = await scene.sync('a');
    expect(requests).to.deep.equal([]);
  });
});

describe('syncing a claim whose request is a copy of that of another VM', () => {
  const remedy =
    ', which requests it too: if VM b is a copy of VM a, remove the network from the annotation network.kubevirt.io/addresses in the ' +
    'template of VM b to get another address, or request a free one there';
  let scene: ClaimSyncScenario;

  beforeEach(async () => {
    scene = new ClaimSyncScenario();
    scene.create('a', { owned: true, request: '["10.0.0.5"]' });
    await scene.cluster.settle();
    scene.create('b', { owned: true, request: '["10.0.0.5"]' });
    await scene.cluster.settle();
  });

  it('says whose request it copies and what to do, and allocates any address once the request is removed', async () => {
    expect(scene.ipsOf('b')).to.deep.equal([]);
    expect(scene.claim('b').status?.conditions?.[0]).to.include({
      type: 'IPsAllocated',
      status: 'False',
      reason: 'IPAddressConflict',
      message: `10.0.0.5 is allocated to IPAMClaim vms/a${remedy}`,
    });
    scene.request('b', undefined);
    await scene.cluster.settle();
    expect(scene.ipsOf('b')).to.have.lengthOf(1).and.not.include('10.0.0.5');
    expect(scene.ipsOf('a')).to.deep.equal(['10.0.0.5']);
  });

  it('says who has the address, and to wait or request another one, if that claim does not request it', async () => {
    scene.create('c', { owned: true });
    await scene.cluster.settle();
    const [address = ''] = scene.ipsOf('c') ?? [];
    scene.request('b', JSON.stringify([address]));
    await scene.cluster.settle();
    expect(scene.claim('b').status?.conditions?.[0]?.message).to.equal(
      `${address} is allocated to IPAMClaim vms/c${WAIT}`,
    );
  });
});

describe('syncing a claim that was restored with its status', () => {
  let scene: ClaimSyncScenario;

  beforeEach(() => {
    scene = new ClaimSyncScenario();
  });

  it('gives the restored claim exactly the addresses in its status', async () => {
    scene.create('a', { restored: ['10.0.0.4/29'] });
    await scene.sync('a');
    expect(scene.ipsOf('a')).to.deep.equal(['10.0.0.4']);
    expect(scene.leases).to.deep.equal(['10.0.0.4']);
  });

  it('reports who has the addresses, keeps showing them, and allocates them once they are free', async () => {
    scene.create('a', { request: '["10.0.0.4"]' });
    await scene.cluster.settle();
    scene.create('b', { restored: ['10.0.0.4/29'] });
    await scene.cluster.settle();
    expect([scene.ipsOf('b'), scene.reasonOf('b')]).to.deep.equal([['10.0.0.4'], 'IPAddressConflict']);
    scene.finish('a');
    await scene.cluster.settle();
    await scene.cluster.coolDown();
    expect([scene.ipsOf('b'), scene.reasonOf('b')]).to.deep.equal([['10.0.0.4'], 'SuccessfulAllocation']);
  });

  it('creates a lease again that a user deleted', async () => {
    scene.create('a');
    await scene.cluster.settle();
    scene.cluster.world.remove('addressleases', 'blue.10-0-0-2');
    await scene.cluster.settle();
    expect(scene.leases).to.deep.equal(['10.0.0.2']);
  });

  it('allocates an address again at once that a user released, also for a claim of another writer', async () => {
    scene.create('a');
    await scene.cluster.settle();
    const releasedAt = new Date(scene.cluster.world.now).toISOString();
    scene.cluster.world.update('addressleases', 'blue.10-0-0-2', ({ spec }) => void (spec.releasedAt = releasedAt));
    await scene.cluster.settle();
    expect([scene.heldBy('a'), scene.reasonOf('a')]).to.deep.equal([['10.0.0.2'], 'SuccessfulAllocation']);
  });

  it('serves a restored claim before an older new claim when a process becomes the leader', async () => {
    scene.create('a');
    scene.create('b', { restored: ['10.0.0.2/29'] });
    scene.cluster.restart(0);
    await scene.cluster.settle();
    expect([scene.heldBy('a'), scene.heldBy('b')]).to.deep.equal([['10.0.0.3'], ['10.0.0.2']]);
  });
});
