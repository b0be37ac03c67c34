import { expect } from 'chai';
import { compiledPool } from '../../../test/objects/lease-objects.js';
import { LeaseAgentWorld, OTHER, callOf } from '../testing/model/lease-agent-world.js';
import { StatusError, TransportError } from '../../../kube/errors.js';
import { ADDRESS_LEASES } from '../../../kube/resources.js';

const POOL = compiledPool({ cidr: '10.0.0.0/24' });
const BROKEN = new TransportError('broken', 'the connection broke');
const UNSENT = new TransportError('unsent', 'nobody listens');
const status = (code: number, reason: string) =>
  new StatusError({ request: 'POST', status: code, reason, message: 'of a test' });

async function refusalOf(answer: Promise<unknown>): Promise<string> {
  try {
    await answer;
  } catch (error) {
    return String(error);
  }
  throw new Error('it succeeded');
}

describe('the address of a pod when requests fail', () => {
  let scene: LeaseAgentWorld;

  beforeEach(() => {
    scene = new LeaseAgentWorld(POOL);
  });

  it('is allocated if the create succeeded and its answer was lost', async () => {
    scene.fail({ error: BROKEN, applied: true });
    const granted = await scene.add();
    expect(scene.held).to.deep.equal(granted);
    expect(scene.requests().map((text) => text.split(' ')[0])).to.deep.equal(['POST', 'GET']);
  });

  it('is allocated by a second create of the same lease if the first was not applied', async () => {
    scene.fail({ error: status(500, 'InternalError'), applied: false });
    const granted = scene.add();
    await scene.turn();
    await scene.pass(50);
    expect(await granted).to.deep.equal(scene.held);
    const [get, post] = scene.requests();
    expect(get?.split(' ')).to.deep.equal(['GET', post?.split(' ')[1]]);
  });

  it('is allocated if the second create finds that the first one arrived late', async () => {
    scene.fail({ error: BROKEN, applied: false }, undefined);
    const granted = scene.add();
    await scene.turn();
    const address = scene.requests()[0]!.split('.')[1]!.replaceAll('-', '.');
    const owner = { kind: 'Pod', namespace: 'apps', name: 'web', uid: 'web-uid' } as const;
    await scene.leaseTo(owner, address);
    const lease = scene.lease(address)!;
    Object.assign(lease.spec, { node: 'n1', containerID: 'web-c1', interface: 'net1' });
    await scene.pass(50);
    expect(await granted).to.deep.equal([address]);
  });

  it('is another one if another owner has leased it meanwhile', async () => {
    scene.fail({ error: BROKEN, applied: false });
    const granted = scene.add();
    await scene.turn();
    const address = scene.requests()[0]!.split('.')[1]!.replaceAll('-', '.');
    await scene.leaseTo(OTHER, address);
    await scene.pass(50);
    expect(await granted).not.to.deep.equal([address]);
  });

  const refusals = [
    { name: 'the API server does not answer', error: UNSENT, code: 11 },
    { name: 'the API server is overloaded', error: status(429, 'TooManyRequests'), code: 11 },
    { name: 'the agent is not authorized', error: status(403, 'Forbidden'), code: 100 },
    { name: 'the lease is invalid', error: status(422, 'Invalid'), code: 100 },
    { name: 'a webhook that names no code denies the lease', error: status(400, 'BadRequest'), code: 100 },
  ];
  for (const { name, error, code } of refusals) {
    it(`is refused with code ${code} after one request if ${name}`, async () => {
      scene.fail({ error, applied: false });
      const refusal = await scene.refused();
      expect(refusal).to.match(new RegExp(`^${code} cannot allocate an address of pool blue to pod apps/web: `));
      expect(refusal).to.include(error.message);
      expect(scene.requests()).to.deep.equal([]);
    });
  }

  it('is released by the DEL if its write had an unknown result, before any watch event', async () => {
    scene.fail({ error: BROKEN, applied: true }, { error: UNSENT, applied: false });
    expect(await scene.refused()).to.match(/^11 /);
    expect(scene.held).to.have.length(1);
    await scene.del();
    expect(scene.held).to.deep.equal([]);
  });

  it('is released by the DEL if its move had an unknown result, also after the next list', async () => {
    await scene.add({ container: 'c1' });
    scene.fail({ error: BROKEN, applied: true }, { error: UNSENT, applied: false });
    expect(await scene.refused({ container: 'c2' })).to.match(/^11 /);
    scene.agent.feeds.get('spec.node=n1')?.list();
    await scene.del({ container: 'c2' });
    expect(scene.held).to.deep.equal([]);
  });

  it('is returned by the next ADD if its write had an unknown result', async () => {
    scene.fail({ error: BROKEN, applied: true }, { error: UNSENT, applied: false });
    await scene.refused();
    expect(await scene.add()).to.deep.equal(scene.held);
  });

  it('is given up at the deadline, and the request under way is recorded', async () => {
    const aborted = new TransportError('aborted', 'aborted by the caller');
    const controller = new AbortController();
    scene.agent.api.before = () => {
      controller.abort();
      scene.fail();
      return { error: aborted, applied: true };
    };
    const granted = scene.grant({}, { call: callOf(controller.signal) });
    expect(await refusalOf(granted)).to.include('timeout, cannot allocate an address of pool blue');
    expect(scene.held).to.have.length(1);
    await scene.del();
    expect(scene.held).to.deep.equal([]);
  });

  it('moves to the new sandbox even if another writer has changed the lease', async () => {
    const first = await scene.add({ container: 'c1' });
    scene.lease(first[0]!)!.metadata.resourceVersion = '77';
    expect(await scene.add({ container: 'c2' })).to.deep.equal(first);
    expect(scene.held).to.deep.equal(first);
  });

  it('stays with the latest sandbox while an ADD of an earlier one is still under way', async () => {
    const first = await scene.add({ container: 'c1' });
    let goOn: () => void = () => undefined;
    scene.agent.api.before = () => new Promise((resolve) => (goOn = () => resolve(undefined)));
    const late = scene.refused({ container: 'c1' });
    await scene.turn();
    scene.fail();
    expect(await scene.add({ container: 'c2' })).to.deep.equal(first);
    goOn();
    expect(await late).to.include('11 sandbox c1 is not the latest sandbox of its pod');
    expect(scene.lease(first[0]!)?.spec.containerID).to.equal('c2');
  });

  it('is refused to an earlier sandbox if a later one had and released it meanwhile', async () => {
    const dual = compiledPool({ subnets: [{ cidr: '10.0.0.0/24' }, { cidr: 'fd00::/64' }] });
    scene = new LeaseAgentWorld(dual);
    const [, ipv6 = ''] = await scene.add({ container: 'c1' });
    const waiting: (() => void)[] = [];
    scene.agent.api.before = () => new Promise((resolve) => waiting.push(() => resolve(undefined)));
    const late = scene.refused({ container: 'c1' });
    await scene.turn();
    waiting[0]!();
    scene.fail();
    await scene.add({ container: 'c2' });
    await scene.del({ container: 'c2' });
    scene.cluster.server.tracker.remove(ADDRESS_LEASES, { name: scene.lease(ipv6)!.metadata.name });
    scene.requests();
    waiting[1]!();
    expect(await late).to.include('11 sandbox c1 is not the latest sandbox of its pod');
    expect(scene.requests().map((text) => text.split(' ')[0])).to.deep.equal(['GET']);
    expect(scene.held).to.deep.equal([]);
  });

  it('is refused and rolled back if a later sandbox comes in during the last write', async () => {
    let goOn: () => void = () => undefined;
    scene.agent.api.before = () => new Promise((resolve) => (goOn = () => resolve(undefined)));
    const late = scene.refused({ container: 'c1' });
    await scene.turn();
    scene.fail();
    const granted = await scene.add({ container: 'c2' });
    goOn();
    expect(await late).to.include('11 sandbox c1 is not the latest sandbox of its pod');
    expect(scene.held).to.deep.equal(granted);
  });

  it('is waited for while the agent starts, until the deadline of the request', async () => {
    await scene.add();
    scene.start();
    const controller = new AbortController();
    const refused = refusalOf(scene.grant({}, { call: callOf(controller.signal) }));
    const granted = scene.add();
    await scene.turn();
    controller.abort();
    expect(await refused).to.include('timeout');
    scene.follow();
    expect(await granted).to.deep.equal(scene.held);
  });

  it('is released by the DEL if the roll-back fails', async () => {
    const dual = compiledPool({ subnets: [{ cidr: '10.0.0.0/24' }, { cidr: 'fd00::/64' }] });
    scene = new LeaseAgentWorld(dual);
    const refused = { error: status(403, 'Forbidden'), applied: false };
    scene.fail(undefined, refused, { error: UNSENT, applied: false });
    expect(await scene.refused()).to.match(/^100 /);
    expect(scene.held).to.have.length(1);
    await scene.del();
    expect(scene.held).to.deep.equal([]);
  });
});

describe("the release of a pod's address when requests fail", () => {
  let scene: LeaseAgentWorld;

  beforeEach(() => {
    scene = new LeaseAgentWorld(POOL);
  });

  it('fails while the API server is not available, and succeeds on a retry', async () => {
    await scene.add();
    scene.fail({ error: UNSENT, applied: false });
    expect(await refusalOf(scene.del())).to.include('nobody listens');
    await scene.del();
    expect(scene.held).to.deep.equal([]);
  });

  it('is done once, even if the answer was lost', async () => {
    const [address = ''] = await scene.add();
    scene.fail({ error: BROKEN, applied: true });
    expect(await refusalOf(scene.del())).to.include('broke');
    const { releasedAt } = scene.lease(address)!.spec;
    await scene.pass(1_000);
    await scene.del();
    expect(scene.lease(address)!.spec.releasedAt).to.equal(releasedAt);
  });

  it('is decided again if another writer has changed the lease', async () => {
    const [address = ''] = await scene.add();
    scene.lease(address)!.metadata.resourceVersion = '77';
    await scene.del();
    expect(scene.held).to.deep.equal([]);
    expect(scene.requests().map((text) => text.split(' ')[0])).to.deep.equal(['POST', 'PATCH', 'GET', 'PATCH']);
  });

  it('does not change a lease that another owner holds now', async () => {
    const [address = ''] = await scene.add();
    const name = `blue.${address.replaceAll('.', '-')}`;
    scene.cluster.server.tracker.remove(ADDRESS_LEASES, { name: name });
    await scene.leaseTo(OTHER, address);
    await scene.del();
    expect(scene.held).to.deep.equal([address]);
  });

  it('succeeds if there is no lease, or it was deleted', async () => {
    await scene.del();
    const [address = ''] = await scene.add();
    scene.cluster.server.tracker.remove(ADDRESS_LEASES, { name: `blue.${address.replaceAll('.', '-')}` });
    await scene.del();
    await scene.del();
    expect(scene.held).to.deep.equal([]);
  });

  it('fails with a 404 that is not about the lease', async () => {
    await scene.add();
    const proxy = { error: status(404, 'Not Found'), applied: false };
    scene.fail(proxy, proxy);
    expect(await refusalOf(scene.del())).to.include('404');
    await scene.del();
    expect(scene.held).to.deep.equal([]);
  });

  it('lists the leases of the node if the agent has just started', async () => {
    const kept = await scene.add({ pod: 'kept' });
    await scene.add();
    scene.start();
    await scene.del();
    expect(scene.requests()[0]).to.equal('GET spec.node=n1');
    expect(scene.held).to.deep.equal(kept);
    scene.fail({ error: UNSENT, applied: false });
    expect(await refusalOf(scene.del({ pod: 'kept' }))).to.include('nobody listens');
  });

  it('never releases the lease of a claim', async () => {
    await scene.leaseTo(OTHER, '10.0.0.9');
    Object.assign(scene.lease('10.0.0.9')!.spec, { node: 'n1', containerID: 'web-c1', interface: 'net1' });
    scene.start().catchUp();
    await scene.del();
    expect(scene.held).to.deep.equal(['10.0.0.9']);
    const target = { containerId: 'web-c1', interfaceName: 'net1' };
    expect(await scene.agent.leases.held(target, callOf())).to.deep.equal([]);
  });
});
