import { expect } from 'chai';
import { parseAddress } from '../../../ipam/core/address.js';
import { StatusError } from '../../../kube/errors.js';
import { AgentWorld, worldWithVm } from '../testing/agent-world.js';
import { makeClaim } from '../../../test/kubevirt-objects.js';
import { adminPool } from '../../../test/pool-objects.js';

const LEASE = 'addressleases blue.10-0-0-5';
const GRANTED = '10.0.0.5/24';

describe('the grant of a claim', () => {
  it('has both families, IPv4 first, with prefix length and gateway of the pool', async () => {
    const world = new AgentWorld();
    world.poolCache.set(
      adminPool('blue', { subnets: [{ cidr: 'fd00::/64' }, { cidr: '10.0.0.0/23', gateway: '10.0.1.1' }] }),
    );
    world.addVm('vm1', { data: 'blue' }, ['fd00::5/64', '10.0.0.5/24']);
    const attachment = world.attachment(world.launcher());
    const entitlement = await world.claimed.authorize(attachment, world.call());
    if (entitlement.kind !== 'claim') throw new Error(entitlement.kind);
    expect(await world.claimed.grant(attachment, entitlement.claim, world.call())).to.deep.equal([
      { address: parseAddress('10.0.0.5'), prefixLength: 23, gateway: parseAddress('10.0.1.1') },
      { address: parseAddress('fd00::5'), prefixLength: 64 },
    ]);
  });

  it('finds the lease in the address space of another pool of the network, of which it was', async () => {
    const world = worldWithVm();
    world.poolCache.set(adminPool('blue', { addressSpace: 'fabric' }));
    world.poolCache.set(adminPool('older', { namespaces: ['elsewhere'], born: 2 }));
    expect(await world.add(world.launcher())).to.equal(GRANTED);
    expect(world.reads.filter((read) => read.startsWith('addressleases'))).to.deep.equal([
      'addressleases fabric.10-0-0-5',
      LEASE,
    ]);
  });

  const obstacles: { name: string; spoil: (world: AgentWorld) => void; expect: RegExp }[] = [
    {
      name: 'the claim has none yet',
      spoil: (world) => {
        world.put('ipamclaims', makeClaim('vm1', 'data'));
      },
      expect: /^11 IPAMClaim vms.vm1.data has no addresses yet; time is up/,
    },
    {
      name: 'the pool is full',
      spoil: (world) => {
        const claim = world.addClaim(makeClaim('vm1', 'data'), []);
        Object.assign(claim.status!.conditions![0]!, { status: 'False', message: 'pool blue is full' });
      },
      expect: /^11 IPAMClaim vms.vm1.data has no addresses yet: pool blue is full; time is up/,
    },
    {
      name: 'the lease is gone',
      spoil: (world) => world.remove('addressleases', 'blue.10-0-0-5'),
      expect: /^11 .* does not have its addresses: nobody has a lease of 10.0.0.5; time is up/,
    },
    {
      name: 'the lease is that of another claim',
      spoil: (world) => void world.addLease('10.0.0.5/24', makeClaim('vm2', 'data')),
      expect: /^11 .* 10.0.0.5 is held by IPAMClaim vms.vm2.data; time/,
    },
    {
      name: 'the lease is released',
      spoil: (world) => {
        const lease = world.addLease('10.0.0.5/24', makeClaim('vm1', 'data'));
        lease.spec.releasedAt = '2026-01-01T00:00:00Z';
      },
      expect: /^11 .* AddressLease blue.10-0-0-5 was released at 2026-01-01T00:00:00.000Z/,
    },
    {
      name: 'the lease is that of an earlier claim of the same name',
      spoil: (world) => {
        const claim = makeClaim('vm1', 'data');
        world.put('ipamclaims', {
          ...world.claim(),
          metadata: { ...claim.metadata, uid: 'new-uid' },
        });
      },
      expect: /^11 .* 10.0.0.5 is held by IPAMClaim vms.vm1.data, an earlier one of that name/,
    },
  ];
  for (const { name, spoil, expect: expected } of obstacles) {
    it(`is not given where ${name}`, async () => {
      const world = worldWithVm();
      spoil(world);
      expect(await world.add(world.launcher(), 0, world.call(2_000))).to.match(expected);
    });
  }

  it('is that of the claim as it is now, where it was made anew since it was seen', async () => {
    const world = worldWithVm();
    const pod = world.launcher();
    expect(await world.add(pod)).to.equal(GRANTED);
    const claim = makeClaim('vm1', 'data');
    claim.metadata.uid = 'new-uid';
    world.remove('addressleases', 'blue.10-0-0-5');
    world.addClaim(claim, ['10.0.0.8/24']);
    expect(await world.add(pod)).to.equal('10.0.0.8/24');
  });

  it('is not that of a stranger who has made a claim of the same name', async () => {
    const world = worldWithVm();
    const pod = world.launcher();
    expect(await world.add(pod)).to.equal(GRANTED);
    const stranger = makeClaim('vm1', 'data', { ownerUid: 'stranger' });
    stranger.metadata.uid = 'new-uid';
    world.addClaim(stranger, ['10.0.0.5/24']);
    expect(await world.add(pod)).to.match(/^11 .*belongs to another VirtualMachine vm1; the VM starts/);
  });

  it('costs a cold agent no more than one read of each object', async () => {
    const world = worldWithVm();
    await world.add(world.launcher('vm1', { references: { data: 'vm1.data' } }));
    expect(world.reads).to.deep.equal([...new Set(world.reads)]);
    expect(world.reads).to.include(LEASE);
  });

  it('is refused with what the API server said, where that was no sign of absence', async () => {
    const world = worldWithVm();
    const pod = world.launcher();
    await world.add(pod);
    world.fault = new StatusError({ request: 'GET x', status: 403, reason: 'Forbidden', message: 'no' });
    expect(await world.add(pod)).to.match(/^11 the API server has not said what is needed.*403 Forbidden/);
  });
});
