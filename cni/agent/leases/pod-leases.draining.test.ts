import { expect } from 'chai';
import { compiledPool } from '../../../test/objects/lease-objects.js';
import { LeaseAgentWorld } from '../testing/model/lease-agent-world.js';

const SUBNET = { cidr: '10.0.0.0/29', gateway: '10.0.0.1' };
const POOL = compiledPool({ subnets: [SUBNET] });
const DRAINING = compiledPool({ subnets: [{ ...SUBNET, draining: ['10.0.0.2-10.0.0.5'] }] });

describe('an address of a draining range', () => {
  let scene: LeaseAgentWorld;

  beforeEach(() => {
    scene = new LeaseAgentWorld(POOL);
  });

  it('is kept by the pod that has it, also in its next sandbox', async () => {
    expect(await scene.add({ requested: ['10.0.0.3'] })).to.deep.equal(['10.0.0.3']);
    expect(await scene.add({}, DRAINING)).to.deep.equal(['10.0.0.3']);
    expect(await scene.add({ container: 'c2' }, DRAINING)).to.deep.equal(['10.0.0.3']);
  });

  it('is given to no other pod', async () => {
    scene = new LeaseAgentWorld(DRAINING);
    expect(await scene.add()).to.deep.equal(['10.0.0.6']);
    expect(await scene.refused({ pod: 'other', requested: ['10.0.0.3'] })).to.equal(
      '7 ips: 10.0.0.3 is in a draining range of pool blue: request one of 10.0.0.6',
    );
  });

  it('is not called leased if the pool has no other one', async () => {
    scene = new LeaseAgentWorld(compiledPool({ subnets: [{ ...SUBNET, draining: ['10.0.0.0/29'] }] }));
    scene.watch();
    expect(await scene.refused()).to.equal(
      '11 pool blue is full: all of its addresses are draining: the kubelet retries until an address is free. Correct its subnets, or ask the administrator to add a range to the pool',
    );
  });
});
