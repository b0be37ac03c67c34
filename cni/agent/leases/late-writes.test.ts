import { expect } from 'chai';
import type { AddressLease } from '../../../api/address-lease.js';
import { NETWORK_STATUS_ANNOTATION } from '../../../api/names.js';
import { compiledPool } from '../../../test/objects/lease-objects.js';
import { TransportError } from '../../../kube/errors.js';
import type { ApiRequest } from '../../../kube/transport/transport.js';
import { COLLECT_AFTER_MS } from '../testing/model/lease-agent.js';
import { LeaseAgentWorld } from '../testing/model/lease-agent-world.js';

const POOL = compiledPool({ cidr: '10.0.0.0/24' });
const ABORTED = new TransportError('aborted', 'aborted by the caller');

describe('a write of the agent that arrives after its caller has given up', () => {
  let scene: LeaseAgentWorld;
  let late: ApiRequest | undefined;

  beforeEach(() => {
    scene = new LeaseAgentWorld(POOL);
    scene.cluster.setPod({ metadata: { namespace: 'apps', name: 'web', uid: 'web-uid' } });
    scene.follow();
  });

  /** Keeps the next write, and answers none of the calls until it ends. */
  async function giveUp(call: () => Promise<unknown>): Promise<void> {
    late = undefined;
    scene.agent.api.before = (request) => {
      if (request.method !== 'GET') late ??= request;
      return late && { error: ABORTED, applied: false };
    };
    await call().catch(() => undefined);
    scene.fail();
  }

  it('leases nothing for longer than its pod exists, if it comes after the DEL', async () => {
    await giveUp(() => scene.add());
    await scene.del();
    const { spec } = scene.agent.api.serve(late!) as AddressLease;
    expect(scene.held).to.deep.equal([spec.address]);
    scene.cluster.deletePods();
    scene.agent.seePods();
    for (let look = 0; look < 6; look++) await scene.pass(COLLECT_AFTER_MS / 2);
    expect(scene.held).to.deep.equal([]);
  });

  describe('and after a new process of the agent has leased another address to the pod', () => {
    let [first, second] = ['', ''];

    beforeEach(async () => {
      await giveUp(() => scene.add());
      scene.start().catchUp();
      [second = ''] = await scene.add({ container: 'web-c2' });
      first = (scene.agent.api.serve(late!) as AddressLease).spec.address;
      scene.agent.listOwn();
    });

    /** @param reported the addresses of the interface, as Multus reports it */
    async function sweep(reported: string | string[], existing: string[], ended = ['web-c1', 'web-c2']): Promise<void> {
      const status = JSON.stringify([{ name: 'apps/blue', interface: 'net1', ips: [reported].flat() }]);
      const annotations = { [NETWORK_STATUS_ANNOTATION]: status };
      scene.cluster.setPod({ metadata: { namespace: 'apps', name: 'web', uid: 'web-uid', annotations } });
      for (const known of Object.values(scene.sandboxes)) known.clear();
      for (const container of existing) scene.sandboxes.existing.add(container);
      for (const container of ended) if (!existing.includes(container)) scene.sandboxes.ended.add(container);
      for (let look = 0; look < 6; look++) await scene.pass(COLLECT_AFTER_MS / 2);
    }

    it('leases nothing for long', async () => {
      await sweep(second, ['web-c2']);
      expect(scene.held).to.deep.equal([second]);
    });

    it('leases its address while its sandbox exists, or Multus or the runtime does not show the other one', async () => {
      for (const existing of [[], ['web-c1'], ['web-c1', 'web-c2'], ['web-c3']]) {
        await sweep(second, existing);
        expect(scene.held, existing.join()).to.have.members([first, second]);
      }
      for (const reported of [first, '10.0.0.77', '', [second, first], [second, `${first}/24`]]) {
        await sweep(reported, ['web-c2']);
        expect(scene.held, String(reported)).to.have.members([first, second]);
      }
    });

    it('leases its address if no record tells that its sandbox has ended', async () => {
      await sweep(second, ['web-c2'], []);
      expect(scene.held).to.have.members([first, second]);
    });

    it('leases its address while the pod cannot be read', async () => {
      scene.agent.api.before = ({ path }) => (path.includes('/pods/') ? { error: ABORTED, applied: false } : undefined);
      await sweep(second, ['web-c2']);
      expect(scene.held).to.have.members([first, second]);
    });
  });

  it('releases nothing, if the interface was added again meanwhile', async () => {
    const before = await scene.add();
    await giveUp(() => scene.del());
    const after = await scene.add();
    expect(after).to.deep.equal(before);
    expect(() => scene.agent.api.serve(late!)).to.throw('Conflict');
    expect(scene.held).to.deep.equal(after);
  });

  it('releases nothing, if the next process has carried out the pending delete and added the interface again', async () => {
    await scene.add();
    await giveUp(() => scene.del());
    scene.start().catchUp();
    await scene.del();
    const after = await scene.add();
    expect(() => scene.agent.api.serve(late!)).to.throw('Conflict');
    expect(scene.held).to.deep.equal(after);
  });
});
