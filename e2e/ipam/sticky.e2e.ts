import { expect } from 'chai';
import { bareAddress } from '../../test/bare-address.js';
import type { AddressLease } from '../../api/address-lease.js';
import { parseAddress } from '../../addressing/address/address.js';
import { leaseName } from '../../addressing/lease/lease-name.js';
import { ADDRESS_LEASES } from '../../kube/resources.js';
import { describeStory } from '../../bed/story/describe.js';
import type { Story } from '../../bed/story/story.js';
import { untilValue } from '../../bed/processes/wait.js';
import { itWithWireStory } from '../../bed/story/wire/wire-story.js';

const MAC = '02:00:00:00:74:01';
const OTHER_MAC = '02:00:00:00:74:02';
const COOLDOWN_S = 3;
/** An address that cools down for so long is allocated to nobody else in a story, however slow the machine is. */
const LONG_S = 600;

/** The lease of an address in any state. */
function leaseOf(story: Story, network: string, address: string): Promise<AddressLease | undefined> {
  return story.client.find(ADDRESS_LEASES, { name: leaseName(network, parseAddress(address)) });
}

/** @returns the time, in milliseconds since the epoch */
async function released(story: Story, network: string, address: string): Promise<number> {
  const find = () => leaseOf(story, network, address);
  const lease = await untilValue(`${address} to be released`, find, (found) => found?.spec.releasedAt !== undefined);
  return Date.parse(lease!.spec.releasedAt!);
}

/** A reservation as an administrator writes it, without labels. */
async function reserve(story: Story, network: string, address: string, mac: string): Promise<void> {
  const { metadata } = await story.addresses.waitForDerivedPool(network);
  const name = leaseName(network, parseAddress(address));
  await story.client.create(ADDRESS_LEASES, {
    metadata: { name },
    spec: { address, addressSpace: network, pool: metadata.name, mac },
  });
}

async function reservedAgain(story: Story, network: string, address: string): Promise<AddressLease> {
  const find = () => leaseOf(story, network, address);
  const lease = await untilValue(`${address} to be reserved again`, find, (found) => found?.spec.owner === undefined);
  return lease!;
}

async function unreserve(story: Story, network: string, address: string): Promise<void> {
  await story.client.delete(ADDRESS_LEASES, { name: leaseName(network, parseAddress(address)) });
}

/** Deletes a VM, and waits until its address is released. @returns the time, in milliseconds since the epoch */
async function endVm(story: Story, name: string, network: string, address: string): Promise<number> {
  await story.deleteVm(name, 'Background');
  await story.waitGone(name);
  return released(story, network, bareAddress(address));
}

describeStory('A MAC address', (story) => {
  itWithWireStory('gives a pod that is created again on another node its old address at once', story, async (wire) => {
    const ipam = { stickyMAC: { ttl: '10m' }, cooldownSeconds: 600 };
    const network = await story().addresses.createNetwork('blue', ['10.74.0.0/24', 'fd00:74::/64'], ipam);
    const create = (name: string, node: string, mac: string) =>
      wire.createPod(name, { networks: [{ name: 'blue', mac }], node });
    await create('web', 'node-1', MAC);
    const mine = await wire.context.wire.addressesOf(await wire.waitRunning('web'), 'net1');
    expect(mine).to.have.length(2);
    await wire.deletePod('web');
    for (const address of mine) await released(story(), network, bareAddress(address));

    await create('other', 'node-2', OTHER_MAC);
    const others = await wire.context.wire.addressesOf(await wire.waitRunning('other'), 'net1');
    await create('web', 'node-2', MAC);
    const web = await wire.waitRunning('web');
    await wire.waitForAddresses(web, 'net1', mine);
    expect(others.filter((address) => mine.includes(address))).to.deep.equal([]);
    const lease = await leaseOf(story(), network, bareAddress(mine[0]!));
    expect(lease?.spec).to.deep.include({ node: 'node-2', mac: MAC });
    expect(lease?.spec.owner?.uid).to.equal(web.metadata.uid);
  });

  for (const retain of [true, false]) {
    it(`has ${retain ? 'its' : 'another'} address for a VM that is deleted and made again, ${retain ? 'once it has cooled down' : 'where the pool does not retain it'}`, async () => {
      const ipam = {
        stickyMAC: { ttl: '10m', ...(retain && { retain }) },
        cooldownSeconds: retain ? COOLDOWN_S : LONG_S,
      };
      const subnet = retain ? '10.74.1.0/24' : '10.74.2.0/24';
      const network = await story().addresses.createNetwork('blue', [subnet], ipam);
      const create = () => story().createVm('vm1', { data: 'blue' }, { macs: { data: MAC.toUpperCase() } });
      await create();
      await story().waitRunning('vm1');
      const mine = await story().addresses.waitForIPs('vm1.data');
      expect((await leaseOf(story(), network, bareAddress(mine[0]!)))?.spec.mac).to.equal(MAC);
      const releasedAt = await endVm(story(), 'vm1', network, mine[0]!);
      await create();
      if (retain) {
        await story().addresses.waitForExactIPs('vm1.data', mine);
        expect(Date.now() - releasedAt).to.be.at.least(COOLDOWN_S * 1_000);
      } else expect(await story().addresses.waitForIPs('vm1.data')).not.to.deep.equal(mine);
      await story().waitRunning('vm1');
    });
  }

  describe('that KubeVirt generated', () => {
    const begin = async (subnet: string, cooldownSeconds: number) => {
      const ipam = { stickyMAC: { ttl: '10m', retain: true }, cooldownSeconds };
      const network = await story().addresses.createNetwork('blue', [subnet], ipam);
      await story().runVm('vm1', { data: 'blue' });
      const mine = await story().addresses.waitForIPs('vm1.data');
      expect((await leaseOf(story(), network, bareAddress(mine[0]!)))?.spec).not.to.have.property('mac');
      return { network, mine, mac: await story().guestMac('vm1', 'data') };
    };
    const again = (mac: string) => story().createVm('vm1', { data: 'blue' }, { macs: { data: mac } });

    it('has its address again if the spec of the first VM contained it', async () => {
      const { network, mine, mac } = await begin('10.74.6.0/24', COOLDOWN_S);
      await story().setMacAddress('vm1', 'data', mac);
      const find = () => leaseOf(story(), network, bareAddress(mine[0]!));
      const noted = await untilValue('the lease to say it', find, (found) => found?.spec.mac !== undefined);
      expect(noted!.spec).to.include({ mac }).and.not.to.have.property('releasedAt');
      const releasedAt = await endVm(story(), 'vm1', network, mine[0]!);
      await again(mac);
      await story().addresses.waitForExactIPs('vm1.data', mine);
      expect(Date.now() - releasedAt).to.be.at.least(COOLDOWN_S * 1_000);
      await story().waitRunning('vm1');
    });

    it('has any address if no spec contained it', async () => {
      const { network, mine, mac } = await begin('10.74.7.0/24', LONG_S);
      await endVm(story(), 'vm1', network, mine[0]!);
      await again(mac);
      expect(await story().addresses.waitForIPs('vm1.data')).not.to.deep.equal(mine);
    });
  });

  it('loses its address in a full pool to a new claim, which gets the address that was released first after its cool-down', async () => {
    const ipam = { stickyMAC: { ttl: '10m', retain: true }, cooldownSeconds: COOLDOWN_S };
    const network = await story().addresses.createNetwork('blue', ['10.74.3.0/30'], ipam);
    const create = (name: string, mac?: string) =>
      story().createVm(name, { data: 'blue' }, { running: false, ...(mac !== undefined && { macs: { data: mac } }) });
    await create('vm1', MAC);
    const [first = ''] = await story().addresses.waitForIPs('vm1.data');
    await create('vm2', OTHER_MAC);
    const [second = ''] = await story().addresses.waitForIPs('vm2.data');
    const releasedAt = await endVm(story(), 'vm1', network, first);
    await endVm(story(), 'vm2', network, second);

    await create('vm3');
    await story().addresses.waitForExactIPs('vm3.data', [first]);
    expect(Date.now() - releasedAt).to.be.at.least(COOLDOWN_S * 1_000);
    await create('vm2', OTHER_MAC);
    await story().addresses.waitForExactIPs('vm2.data', [second]);
    await create('vm1', MAC);
    await story().addresses.waitForRefusal('vm1.data', 'SubnetExhausted');
  });
});

describeStory('Reservations for MAC addresses', (story) => {
  const subnets = ['10.74.4.0/24', 'fd00:74:4::/64'];
  const entries = ['10.74.4.77', 'fd00:74:4::77'];

  it('give a VM its addresses in a pool without sticky addresses, and are unchanged afterwards', async () => {
    const network = await story().addresses.createNetwork('blue', subnets);
    for (const address of entries) await reserve(story(), network, address, MAC);
    try {
      await story().createVm('vm1', { data: 'blue' }, { running: false, macs: { data: MAC } });
      await story().addresses.waitForExactIPs('vm1.data', ['10.74.4.77/24', 'fd00:74:4::77/64']);
      await story().createVm('vm2', { data: 'blue' }, { running: false, macs: { data: OTHER_MAC } });
      expect(await story().addresses.waitForIPs('vm2.data')).not.to.include('10.74.4.77/24');
      await endVm(story(), 'vm1', network, entries[0]!);
      const { metadata } = await story().addresses.waitForDerivedPool(network);
      for (const address of entries) {
        expect((await reservedAgain(story(), network, address)).spec).to.deep.equal({
          ...{ address, addressSpace: network, pool: metadata.name, mac: MAC },
          reserved: true,
        });
      }
      await story().createVm('vm1', { data: 'blue' }, { running: false, macs: { data: MAC } });
      await story().addresses.waitForExactIPs('vm1.data', ['10.74.4.77/24', 'fd00:74:4::77/64']);
      await story().deleteVm('vm1', 'Background');
      for (const address of entries) await reservedAgain(story(), network, address);
    } finally {
      for (const address of entries) await unreserve(story(), network, address);
    }
  });

  itWithWireStory('give a pod its address on any node, and no other pod', story, async (wire) => {
    const network = await story().addresses.createNetwork('blue', ['10.74.5.0/30'], { cooldownSeconds: 600 });
    await reserve(story(), network, '10.74.5.2', MAC);
    try {
      const create = (name: string, node: string, mac?: string) =>
        wire.createPod(name, { networks: [{ name: 'blue', ...(mac !== undefined && { mac }) }], node });
      await create('other', 'node-1', OTHER_MAC);
      expect(await wire.addressOf(await wire.waitRunning('other'))).to.equal('10.74.5.1/30');
      for (const node of ['node-1', 'node-2']) {
        await create('web', node, MAC);
        expect(await wire.addressOf(await wire.waitRunning('web'))).to.equal('10.74.5.2/30');
        await wire.deletePod('web');
        await released(story(), network, '10.74.5.2');
      }
      await create('late', 'node-2');
      expect(await wire.waitForSandboxFailure('late', /is full/)).to.include('2 of 2 leased');
    } finally {
      await unreserve(story(), network, '10.74.5.2');
    }
  });
});
