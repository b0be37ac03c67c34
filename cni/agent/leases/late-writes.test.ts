import { expect } from 'chai';
import type { AddressLease } from '../../../api/address-lease.js';
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

  it('releases nothing, if the interface was added again meanwhile', async () => {
    const before = await scene.add();
    await giveUp(() => scene.del());
    const after = await scene.add();
    expect(after).to.deep.equal(before);
    expect(() => scene.agent.api.serve(late!)).to.throw('Conflict');
    expect(scene.held).to.deep.equal(after);
  });
});
