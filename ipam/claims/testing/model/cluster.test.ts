import { expect } from 'chai';
import { IpamModelCluster } from './cluster.js';

const RESTORED = ['10.0.0.5/29', '2001:db8::2/126'];

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
