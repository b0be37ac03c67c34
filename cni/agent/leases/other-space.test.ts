import { expect } from 'chai';
import { LeaseAgentWorld } from '../testing/model/lease-agent-world.js';
import { compiledPool } from '../../../test/objects/lease-objects.js';
import { leaseName } from '../../../addressing/lease/lease-name.js';
import { parseAddress } from '../../../addressing/address/address.js';
import { Client } from '../../../kube/client.js';
import { ADDRESS_LEASES } from '../../../kube/resources.js';

const MAC = '02:00:00:00:00:01';
const SUBNETS = [{ cidr: '10.0.0.0/29', gateway: '10.0.0.1' }];
const STICKY = compiledPool({ subnets: SUBNETS, stickyMAC: { ttl: '1h' } });
const PLAIN = compiledPool({ subnets: SUBNETS });
/** The same pool after it was recreated in another address space. */
const STICKY_MOVED = compiledPool({ subnets: SUBNETS, stickyMAC: { ttl: '1h' }, addressSpace: 'green' });
const PLAIN_MOVED = compiledPool({ subnets: SUBNETS, addressSpace: 'green' });

async function reserve(scene: LeaseAgentWorld, address: string, addressSpace: string): Promise<void> {
  const metadata = { name: leaseName(addressSpace, parseAddress(address)) };
  const spec = { address, addressSpace, pool: 'blue', mac: MAC };
  await new Client(scene.cluster.server).create(ADDRESS_LEASES, { metadata, spec });
}

describe('an ADD from a pool whose name occurs in leases of two address spaces', () => {
  for (const isFollowed of [false, true]) {
    const known = isFollowed ? 'followed' : 'listed';
    it(`ignores the lease of another address space if leases are ${known}`, async () => {
      const scene = new LeaseAgentWorld(STICKY);
      await scene.add({ mac: MAC });
      await scene.del();
      if (isFollowed) scene.watch(STICKY_MOVED);
      await scene.add({ uid: 'again', mac: MAC }, STICKY_MOVED);
      expect(scene.held).to.have.length(1);
      for (const { spec } of scene.cluster.held()) expect(spec.addressSpace).to.equal('green');
    });

    it(`ignores a reservation in another address space than the pool's if leases are ${known}`, async () => {
      const scene = new LeaseAgentWorld(PLAIN);
      await reserve(scene, '10.0.0.6', 'bleu');
      if (isFollowed) scene.watch();
      expect(await scene.add({ mac: MAC })).to.have.length(1);
    });
  }

  it('ignores the lease that the pod had in another address space', async () => {
    const scene = new LeaseAgentWorld(PLAIN);
    await scene.add({ requested: ['10.0.0.6'] });
    await scene.del();
    scene.follow();
    await scene.add({ container: 'c2', requested: ['10.0.0.6'] }, PLAIN_MOVED);
    expect(scene.cluster.held().map(({ metadata }) => metadata.name)).to.deep.equal(['green.10-0-0-6']);
  });

  it("leaves the pod's lease in another address space to the DEL of its sandbox", async () => {
    const scene = new LeaseAgentWorld(PLAIN);
    await scene.add({ requested: ['10.0.0.6'] });
    const [address] = await scene.add({ container: 'c2' }, PLAIN_MOVED);
    const names = () => scene.cluster.held().map(({ metadata }) => metadata.name);
    const moved = leaseName('green', parseAddress(address!));
    expect(names()).to.have.members(['blue.10-0-0-6', moved]);
    await scene.del();
    expect(names()).to.deep.equal([moved]);
  });
});
