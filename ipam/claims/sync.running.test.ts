import { expect } from 'chai';
import { ClaimSyncScenario } from './testing/model/claim-sync-scenario.js';

describe('syncing the first claim of a running VM', () => {
  let scene: ClaimSyncScenario;
  const launch = (reports: boolean, index = 3) => {
    scene.cluster.operate({ do: 'startLauncher', name: 'a' });
    scene.cluster.operate({ do: 'addLauncher', name: 'a', index, late: false, reports });
  };
  const conditionOf = (type: string) => scene.claim('a').status?.conditions?.find((each) => each.type === type);
  const rewrite = (status: object[]) =>
    scene.cluster.world.update('pods', 'vms/a', ({ metadata }) => {
      metadata.annotations!['k8s.v1.cni.cncf.io/network-status'] = JSON.stringify(status);
    });

  /** The derived pool, which the administrator's one has replaced, leased the address. */
  const leaseFromDerivedPool = () => {
    const { world } = scene.cluster;
    const metadata = { name: 'blue.10-0-0-5' };
    const { spec } = world.get('addressleases', metadata.name)!;
    world.remove('addressleases', metadata.name);
    world.create('addressleases', { metadata, spec: { ...spec, pool: 'blue.vms' } });
  };

  beforeEach(() => {
    scene = new ClaimSyncScenario();
  });

  for (const reports of [true, false]) {
    it(`takes over the lease of its launcher in one write, ${reports ? 'as Multus reports it' : 'before Multus reports it'}`, async () => {
      launch(reports);
      scene.create('a', { owned: true });
      const { requests } = await scene.sync('a');
      expect(requests).to.deep.equal(['PATCH addressleases blue.10-0-0-5', 'PATCH ipamclaims a status']);
      expect(scene.ipsOf('a')).to.deep.equal(['10.0.0.5']);
      expect(scene.heldBy('a')).to.deep.equal(['10.0.0.5']);
    });
  }

  it('takes over the lease that its launcher has from a pool that another one has replaced', async () => {
    launch(true);
    leaseFromDerivedPool();
    scene.create('a', { owned: true });
    await scene.cluster.settle();
    expect(scene.heldBy('a')).to.deep.equal(['10.0.0.5']);
    expect(conditionOf('IPsAllocated')).to.include({ status: 'True', message: 'Leased from AddressPool blue.vms' });
    scene.cluster.operate({ do: 'endPod', name: 'a' });
    await scene.cluster.settle();
    await scene.cluster.coolDown();
    expect(scene.ipsOf('a')).to.deep.equal(['10.0.0.5']);
  });

  it('keeps the address of the launcher for good if the request only repeats the former one', async () => {
    scene.cluster.operate({ do: 'startLauncher', name: 'a' });
    scene.create('a', { owned: true, request: '["10.0.0.4"]', isFormer: true });
    await scene.sync('a');
    scene.cluster.operate({ do: 'addLauncher', name: 'a', index: 3, late: true, reports: true });
    await scene.cluster.settle();
    expect(scene.ipsOf('a')).to.deep.equal(['10.0.0.2']);
    expect(conditionOf('RequestHonoured')).to.equal(undefined);
    scene.cluster.operate({ do: 'endPod', name: 'a' });
    await scene.cluster.settle();
    await scene.cluster.coolDown();
    expect(scene.ipsOf('a')).to.deep.equal(['10.0.0.2']);
  });

  it('keeps the address of the launcher, and reports why it is not the requested one', async () => {
    launch(true);
    scene.create('a', { owned: true, request: '["10.0.0.4"]' });
    await scene.sync('a');
    expect(scene.ipsOf('a')).to.deep.equal(['10.0.0.5']);
    expect(conditionOf('RequestHonoured')).to.include({ status: 'False', reason: 'ClaimInUse' });
    scene.cluster.operate({ do: 'endPod', name: 'a' });
    await scene.cluster.settle();
    expect(scene.ipsOf('a')).to.deep.equal(['10.0.0.4']);
  });

  it('leases an address that another IPAM gave to the launcher', async () => {
    launch(true);
    scene.cluster.world.remove('addressleases', 'blue.10-0-0-5');
    scene.create('a', { owned: true });
    const { requests } = await scene.sync('a');
    expect(requests).to.deep.equal(['POST addressleases', 'PATCH ipamclaims a status']);
    expect(scene.ipsOf('a')).to.deep.equal(['10.0.0.5']);
  });

  const outside = [
    {
      name: 'is not in the pool',
      ips: ['192.0.2.7/24'],
      reason: 'AddressOutOfRange',
      words: '192.0.2.7, which pool blue',
    },
    { name: 'is never leased', ips: ['10.0.0.1'], reason: 'AddressOutOfRange', words: 'add it to the pool to keep it' },
    {
      name: 'is one of two of a family',
      ips: ['10.0.0.4', '10.0.0.5'],
      reason: 'InvalidRequest',
      words: 'Pod a has addresses that no claim can hold: "10.0.0.5" is a second IPv4 address',
    },
    { name: 'cannot be read', ips: ['nonsense'], reason: 'InvalidRequest', words: 'no claim can hold: ' },
  ];
  for (const { name, ips, reason, words } of outside) {
    it(`allocates no other address while the launcher runs with one that ${name}`, async () => {
      launch(true);
      scene.cluster.world.remove('addressleases', 'blue.10-0-0-5');
      rewrite([{ name: 'vms/blue', interface: 'net1', ips }]);
      scene.create('a', { owned: true });
      await scene.cluster.settle();
      expect(conditionOf('IPsAllocated')).to.include({ status: 'False', reason });
      expect(conditionOf('IPsAllocated')?.message).to.include(words);
      expect(scene.leases).to.deep.equal([]);
      scene.cluster.operate({ do: 'endPod', name: 'a' });
      await scene.cluster.settle();
      expect(scene.ipsOf('a')).to.deep.equal(['10.0.0.2']);
    });
  }

  const unrelated = [
    { name: 'another interface', status: { name: 'vms/blue', interface: 'net2', ips: ['10.0.0.5'] } },
    { name: 'another NAD', status: { name: 'vms/green', interface: 'net1', ips: ['10.0.0.5'] } },
    { name: 'an interface without a name', status: { name: 'vms/blue', ips: ['10.0.0.5'] } },
  ];
  for (const { name, status } of unrelated) {
    it(`ignores an address on ${name}`, async () => {
      launch(true);
      scene.cluster.world.remove('addressleases', 'blue.10-0-0-5');
      rewrite([status]);
      scene.create('a', { owned: true });
      await scene.sync('a');
      expect(scene.ipsOf('a')).to.deep.equal(['10.0.0.2']);
    });
  }

  it('allocates another address if the interface of its launcher is still on the NAD from which the VM moves away', async () => {
    launch(true);
    rewrite([{ name: 'vms/green', interface: 'net1', ips: ['10.0.0.5'] }]);
    scene.create('a', { owned: true });
    await scene.cluster.settle();
    expect(scene.ipsOf('a')).to.deep.equal(['10.0.0.2']);
    expect(scene.leases).to.have.members(['10.0.0.2', '10.0.0.5']);
  });

  it('allocates another address if its launcher, which reports nothing yet, has a lease of another network', async () => {
    launch(false);
    const { spec } = scene.cluster.world.get('addressleases', 'blue.10-0-0-5')!;
    scene.cluster.world.remove('addressleases', 'blue.10-0-0-5');
    const green = { ...spec, addressSpace: 'green', pool: 'green' };
    scene.cluster.world.create('addressleases', { metadata: { name: 'green.10-0-0-5' }, spec: green });
    scene.create('a', { owned: true });
    await scene.sync('a');
    expect(scene.ipsOf('a')).to.deep.equal(['10.0.0.2']);
  });

  it('does not take the address of another VM that its launcher pretends to have', async () => {
    scene.create('b', { owned: true });
    await scene.sync('b');
    launch(true);
    rewrite([{ name: 'vms/blue', interface: 'net1', ips: ['10.0.0.2'] }]);
    scene.create('a', { owned: true });
    await scene.cluster.settle();
    expect(scene.ipsOf('b')).to.deep.equal(['10.0.0.2']);
    expect(scene.ipsOf('a')).to.deep.equal([]);
    expect(conditionOf('IPsAllocated')).to.include({ status: 'False', reason: 'IPAddressConflict' });
  });

  it('waits while two launchers run with different addresses, and takes over those of the one that remains', async () => {
    launch(true);
    const source = scene.cluster.world.get('pods', 'vms/a')!;
    const target = { ...source.metadata, name: 'target' };
    target.annotations = {
      ...target.annotations,
      'k8s.v1.cni.cncf.io/network-status': '[{"name":"vms/blue","interface":"net1","ips":["10.0.0.4"]}]',
    };
    scene.cluster.world.create('pods', { metadata: target, status: { phase: 'Running' } });
    scene.create('a', { owned: true });
    await scene.cluster.settle();
    expect(conditionOf('IPsAllocated')?.message).to.equal(
      'Pod a runs with 10.0.0.5, and pod target with 10.0.0.4: the claim gets the addresses of the one that remains',
    );
    scene.cluster.operate({ do: 'endPod', name: 'a' });
    await scene.cluster.settle();
    expect(scene.ipsOf('a')).to.deep.equal(['10.0.0.4']);
  });

  for (const isReplaced of [false, true]) {
    const pool = isReplaced ? 'from a pool that another one has replaced ' : '';
    it(`shows the address of the launcher instead of its own if it saw the lease of the launcher ${pool}too late`, async () => {
      scene.cluster.operate({ do: 'startLauncher', name: 'a' });
      scene.create('a', { owned: true });
      await scene.sync('a');
      expect(scene.ipsOf('a')).to.deep.equal(['10.0.0.2']);
      scene.cluster.operate({ do: 'addLauncher', name: 'a', index: 2, late: true, reports: true });
      if (isReplaced) leaseFromDerivedPool();
      const { requests } = await scene.sync('a');
      expect(requests).to.deep.equal([
        'GET ipamclaims a',
        'GET pods',
        'PATCH addressleases blue.10-0-0-5',
        'PATCH ipamclaims a status',
      ]);
      expect(scene.ipsOf('a')).to.deep.equal(['10.0.0.5']);
      scene.cluster.operate({ do: 'endPod', name: 'a' });
      await scene.cluster.settle();
      expect(scene.heldBy('a')).to.deep.equal(['10.0.0.5']);
    });
  }

  const stops = [0, 1, 2, 3, 4].flatMap((request) => [false, true].map((applied) => ({ request, applied })));
  for (const { request, applied } of stops) {
    const when = `if the process stops ${applied ? 'after' : 'before'} request ${request}`;
    const stop = async () => {
      scene.failRequest(request, { error: new Error('killed'), applied });
      await scene.sync('a').catch(() => undefined);
      scene.cluster.api.before = () => undefined;
      scene.cluster.restart(0);
      await scene.cluster.settle();
    };

    it(`takes over both addresses of a launcher ${when}`, async () => {
      scene.cluster.operate({ do: 'pool', pool: 'dual' });
      launch(false);
      const both = scene.leases;
      scene.create('a', { owned: true });
      await stop();
      expect(both).to.have.length(2);
      expect(scene.heldBy('a')).to.have.members(both);
      expect(scene.ipsOf('a')).to.have.members(both);
    });

    it(`shows both addresses of the launcher instead of its own ${when}`, async () => {
      scene.cluster.operate({ do: 'pool', pool: 'dual' });
      scene.cluster.operate({ do: 'startLauncher', name: 'a' });
      scene.create('a', { owned: true });
      await scene.sync('a');
      const own = scene.leases;
      scene.cluster.operate({ do: 'addLauncher', name: 'a', index: 2, late: true, reports: true });
      const others = scene.leases.filter((address) => !own.includes(address));
      await stop();
      expect(others).to.have.length(2);
      expect(scene.ipsOf('a')).to.have.members(others);
    });
  }

  it('keeps its own address in the status while another pod may have it', async () => {
    scene.cluster.operate({ do: 'startLauncher', name: 'a' });
    scene.create('a', { owned: true });
    await scene.sync('a');
    scene.cluster.operate({ do: 'addLauncher', name: 'a', index: 2, late: true, reports: true });
    const { metadata, ...rest } = scene.cluster.world.get('pods', 'vms/a')!;
    const { 'k8s.v1.cni.cncf.io/network-status': _status, ...annotations } = metadata.annotations!;
    scene.cluster.world.create('pods', { ...rest, metadata: { ...metadata, name: 'target', annotations } });
    await scene.sync('a');
    expect(scene.ipsOf('a')).to.deep.equal(['10.0.0.2']);
  });
});
