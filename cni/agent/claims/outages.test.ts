import { expect } from 'chai';
import type { Pod } from '../../../api/pod.js';
import { StatusError, TransportError } from '../../../kube/errors.js';
import { type AgentWorld, SelfAdvancingClock, worldWithVm } from '../testing/agent-world.js';
import { makeClaim } from '../../../test/objects/kubevirt-objects.js';

const GRANTED = '10.0.0.5/24';
const AWAY = /^11 the API server is not available, and the kubelet retries: /;

/** Runs an ADD, after which the agent has read everything that another one needs. */
async function seen(): Promise<{ world: AgentWorld; clock: SelfAdvancingClock; pod: Pod }> {
  const clock = new SelfAdvancingClock();
  const world = worldWithVm(clock);
  const pod = world.launcher();
  expect(await world.add(pod)).to.equal(GRANTED);
  return { world, clock, pod };
}

const ANSWERS = {
  'refuses connections': new TransportError('unsent', 'connection refused'),
  'breaks connections': new TransportError('broken', 'reset'),
  'stays silent': new TransportError('deadline', 'no complete response'),
  'has lost its store': new StatusError({ request: 'GET', status: 500, reason: 'InternalError', message: 'etcd' }),
  'is overloaded': new StatusError({ request: 'GET', status: 429, reason: 'TooManyRequests', message: 'later' }),
};

describe('the addresses of a claim while the API server is not available', () => {
  for (const [what, fault] of Object.entries(ANSWERS)) {
    it(`are returned from recent reads if the server ${what}`, async () => {
      const { world, clock, pod } = await seen();
      world.fault = fault;
      clock.advance(world.maxStalenessMs);
      expect(await world.add(pod)).to.equal(GRANTED);
    });

    it(`are not returned from reads that are too old if the server ${what}`, async () => {
      const { world, clock, pod } = await seen();
      world.fault = fault;
      clock.advance(world.maxStalenessMs + 1);
      expect(await world.add(pod)).to.match(AWAY);
    });
  }

  it('are not returned from old reads after the wall clock was set back', async () => {
    const { world, clock, pod } = await seen();
    clock.setBack(300_000);
    world.addLease('10.0.0.5/24', makeClaim('vm2', 'data'));
    expect(await world.add(pod, 0, world.call(200))).to.match(/^11 .*is allocated to IPAMClaim vms.vm2.data/);
    world.disconnect();
    clock.advance(120_000);
    expect(await world.add(pod)).to.match(AWAY);
  });

  it('are not returned without a recent read', async () => {
    const world = worldWithVm();
    world.disconnect();
    expect(await world.add(world.launcher())).to.match(AWAY);
  });

  it('are not returned if another claim held the lease when it was read', async () => {
    const { world, pod } = await seen();
    world.addLease('10.0.0.5/24', makeClaim('vm2', 'data'));
    expect(await world.add(pod, 0, world.call(200))).to.match(/^11 .*is allocated to IPAMClaim vms.vm2.data/);
    world.disconnect();
    expect(await world.add(pod)).to.match(AWAY);
  });

  it('are not returned from reads that became too old during the wait', async () => {
    const { world, clock, pod } = await seen();
    clock.advance(world.maxStalenessMs - 1_000);
    world.disconnect();
    world.before = () => clock.advance(3_000);
    expect(await world.add(pod)).to.match(AWAY);
  });

  it('are not returned from recent reads if the API server denies the read', async () => {
    const { world, pod } = await seen();
    world.fault = new StatusError({ request: 'GET', status: 401, reason: 'Unauthorized', message: 'who?' });
    expect(await world.add(pod)).to.match(/^11 a read from the API server failed/);
  });

  it('are not returned from recent reads if the runtime cancels the request', async () => {
    const { world, pod } = await seen();
    world.fault = new TransportError('aborted', 'aborted by the caller');
    expect(await world.add(pod)).to.match(/^11 .*aborted by the caller/);
  });

  it('are not needed for pods without a claim, which are served as usual', async () => {
    const { world } = await seen();
    world.disconnect();
    expect(await world.add(world.tenantPod())).to.equal('none');
  });

  it('are never returned from recent reads to a pod that refers to a claim without a VM', async () => {
    const { world } = await seen();
    world.disconnect();
    expect(await world.add(world.tenantPod('mine'))).to.match(AWAY);
  });
});
