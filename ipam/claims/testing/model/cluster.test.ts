import { expect } from 'chai';
import { IpamModelCluster } from './cluster.js';

const RESTORED = ['10.0.0.5/29', '2001:db8::2/126'];

describe('the model of a claim and a launcher with an address of its own', () => {
  it('lets the claim leave the same address of another address space', async () => {
    const cluster = new IpamModelCluster();
    cluster.operate({ do: 'startLauncher', name: 'b' });
    cluster.operate({ do: 'addLauncher', name: 'b', index: 0, late: false, reports: false });
    cluster.operate({ do: 'pool', pool: 'moved' });
    cluster.operate({ do: 'create', name: 'b', request: undefined, restored: undefined, owned: false });
    await cluster.settle();
    cluster.operate({ do: 'pool', pool: 'renumbered' });
    await cluster.settle();
    expect(cluster.world.get('ipamclaims', 'vms/b')?.status?.ips).to.deep.equal(['10.0.1.1/29']);
  });
});

describe('the model of two leaders', () => {
  const NEW = { request: undefined, restored: undefined, owned: false } as const;
  let cluster: IpamModelCluster;
  const refusal = () => cluster.world.get('ipamclaims', 'vms/a')?.status?.conditions?.[0]?.reason;

  beforeEach(async () => {
    cluster = new IpamModelCluster();
    cluster.operate({ do: 'create', name: 'b', ...NEW, request: '["10.0.0.5"]' });
    await cluster.settle();
    cluster.operate({ do: 'finish', name: 'b' });
  });

  it('settles when one of them started after a cool-down had ended', async () => {
    await cluster.settle();
    cluster.operate({ do: 'pass', seconds: 90 });
    const { now } = cluster.world;
    cluster.restart(0);
    cluster.operate({ do: 'create', name: 'a', ...NEW, restored: RESTORED });
    await cluster.settle();
    expect([refusal(), cluster.world.now]).to.deep.equal(['AddressOutOfRange', now]);
  });

  it('settles when one of them learned of a release so late that it still counts the cool-down', async () => {
    const [first] = cluster.processes;
    first?.deliverAll();
    await first?.syncFromQueue('vms/b');
    first?.deliverAll();
    cluster.operate({ do: 'pass', seconds: 90 });
    cluster.operate({ do: 'create', name: 'a', ...NEW, restored: RESTORED });
    await cluster.settle();
    expect(refusal()).to.equal('AddressOutOfRange');
  });
});
