import { expect } from 'chai';
import { objectKey } from '../../api/meta.js';
import { ClaimsModelCluster } from './testing/model/cluster.js';
import { applyOperation } from './testing/model/operations.js';

describe('an interface that is plugged again before Multus has detached it', () => {
  it('keeps the claim whose address it has until the VM restarts, although its NAD names another network now', async () => {
    const cluster = new ClaimsModelCluster();
    const { world, kubevirt } = cluster;
    const claimedNetworks = () => world.list('claims').map(({ spec }) => spec.network);
    applyOperation(world, { do: 'create VM', networks: { data: 'blue' }, running: true });
    await cluster.settle();
    applyOperation(world, { do: 'edit NAD', nad: 'blue', config: 'renamed' });
    await cluster.settle();
    applyOperation(world, { do: 'unplug', network: 'data' });
    kubevirt.steps.syncNetworks();
    // virt-controller removes the element from the launcher's annotation
    kubevirt.steps.regenerate();
    applyOperation(world, { do: 'plug', network: 'data', nad: 'blue' });
    await cluster.settle();
    cluster.check();
    expect(claimedNetworks()).to.have.members(['blue-net', 'new-blue-net']);

    for (const running of [false, true]) {
      applyOperation(world, { do: 'run VM', running });
      await cluster.settle();
    }
    cluster.check();
    expect(claimedNetworks()).to.deep.equal(['new-blue-net']);
  });

  it('keeps the claim whose address the target of a migration has, although its NAD names the former network again', async () => {
    const cluster = new ClaimsModelCluster();
    const { world, kubevirt, controller } = cluster;
    const claimedNetworks = () => world.list('claims').map(({ spec }) => spec.network);
    const syncAll = async () => {
      while (controller.deliverAll() || controller.queue.size > 0) await controller.syncNext();
    };
    const allocate = (network: string, address: string) => {
      const found = world.list('claims').find(({ spec }) => spec.network === network);
      world.update('claims', objectKey(found!), (copy) => Object.assign(copy, { status: { ips: [address] } }));
    };
    applyOperation(world, { do: 'create VM', networks: { data: 'blue' }, running: false });
    await cluster.settle();
    // Multus reports it: the network has an IPAM
    allocate('blue-net', '10.0.0.5/24');
    applyOperation(world, { do: 'run VM', running: true });
    await cluster.settle();
    applyOperation(world, { do: 'edit NAD', nad: 'blue', config: 'renamed' });
    await syncAll();
    allocate('new-blue-net', '10.0.0.7/24');
    kubevirt.migrate();
    kubevirt.steps.attach();
    applyOperation(world, { do: 'edit NAD', nad: 'blue', config: 'persistent' });
    for (const edit of [{ do: 'unplug' } as const, { do: 'plug', nad: 'blue' } as const]) {
      applyOperation(world, { ...edit, network: 'data' });
      kubevirt.steps.syncNetworks();
      kubevirt.steps.regenerate();
    }
    await syncAll();
    cluster.check();
    expect(claimedNetworks()).to.have.members(['blue-net', 'new-blue-net']);

    kubevirt.failMigration();
    await cluster.settle();
    cluster.check();
    expect(claimedNetworks()).to.deep.equal(['blue-net']);
  });
});
