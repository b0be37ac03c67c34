import { expect } from 'chai';
import type { AddressPool, PoolSubnet } from '../../api/address-pool.js';
import { ADDRESS_DRAINING, AllocationReason } from '../../api/names.js';
import { podInterfaceName } from '../../api/pod.js';
import { bareAddress } from '../../test/bare-address.js';
import { describeStory } from '../../bed/story/describe.js';
import type { Story } from '../../bed/story/story.js';
import { itWithWireStory } from '../../bed/story/wire/wire-story.js';

const DATA = podInterfaceName('data');

/** Replaces the subnets of the NAD, and so of its pool. */
async function setSubnets(story: Story, subnets: readonly (string | PoolSubnet)[]): Promise<AddressPool> {
  const network = await story.addresses.createNetwork('blue', subnets);
  const wanted = subnets.length;
  const { metadata } = await story.addresses.waitForDerivedPool(network);
  return story.addresses.waitForPool(
    metadata.name,
    'to have the new subnets',
    ({ spec, status, metadata: { generation } }) => {
      return spec.subnets.length === wanted && status?.observedGeneration === generation;
    },
  );
}

function drainingOf({ status }: AddressPool) {
  return status?.conditions?.find(({ type }) => type === 'Draining');
}

function waitDraining(story: Story, pool: AddressPool, reason: string): Promise<AddressPool> {
  return story.addresses.waitForPool(
    pool.metadata.name,
    `to be ${reason}`,
    (each) => drainingOf(each)?.reason === reason,
  );
}

/**
 * Restarts a VM after its claim has got another address. A VM that starts before ipam has seen it stopped keeps its address.
 * @returns the new address
 */
async function restartWithOther(story: Story, vm: string, isOther: (address: string) => boolean): Promise<string> {
  await story.stop(vm);
  const { status } = await story.claims.waitFor(`${vm}.data`, 'to have an address that is not draining', (claim) =>
    (claim.status?.ips ?? []).some(isOther),
  );
  await story.start(vm);
  return status!.ips![0]!;
}

describeStory('A VM whose address is in a draining range', (story) => {
  itWithWireStory('gets another address at its next start, and the pool lists it until then', story, async (wire) => {
    await setSubnets(story(), ['10.78.1.0/24']);
    await story().runVm('vm1', { data: 'blue' });
    const [before = ''] = await story().addresses.waitForIPs('vm1.data');
    const launcher = await wire.launcher('vm1');
    await wire.waitForAddresses(launcher, DATA, [before]);
    const pool = await setSubnets(story(), [{ cidr: '10.78.1.0/24', draining: ['10.78.1.0/25'] }]);
    const listed = await waitDraining(story(), pool, 'AddressesInUse');
    expect(drainingOf(listed)?.message).to.match(
      new RegExp(`^1 address .* in use: ${bareAddress(before)} \\(IPAMClaim ${story().namespace}/vm1\\.data\\)`),
    );
    const { reason } = await story().addresses.waitForCondition('vm1.data', ADDRESS_DRAINING, 'True');
    expect(reason).to.equal('ClaimInUse');
    expect((await story().waitForEvent('vm1', 'AddressDraining')).message).to.include('restart the VM');
    await wire.waitForAddresses(launcher, DATA, [before]);
    await story().migrate('vm1', 'Succeeded');
    await wire.waitForAddresses(await wire.launcher('vm1'), DATA, [before]);
    const isOther = (address: string) => Number(bareAddress(address).split('.')[3]) > 127;
    const after = await restartWithOther(story(), 'vm1', isOther);
    await wire.waitForAddresses(await wire.launcher('vm1'), DATA, [after]);
    await story().addresses.waitForExactIPs('vm1.data', [after]);
    await waitDraining(story(), pool, 'Drained');
    await story().addresses.waitHeld([bareAddress(after)]);
  });

  itWithWireStory(
    'moves to a new CIDR with all VMs of its network, and the old one is removed',
    story,
    async (wire) => {
      const vms = ['vm1', 'vm2', 'vm3', 'vm4'];
      await setSubnets(story(), ['10.78.2.0/24']);
      for (const vm of vms) await story().createVm(vm, { data: 'blue' });
      await Promise.all(vms.map((vm) => story().waitRunning(vm)));
      await story().stop('vm4');
      const pool = await setSubnets(story(), [{ cidr: '10.78.2.0/24', draining: ['10.78.2.0/24'] }, '10.79.2.0/24']);
      await waitDraining(story(), pool, 'AddressesInUse');
      const removal = setSubnets(story(), ['10.79.2.0/24']);
      expect(await removal.catch((error: unknown) => (error as Error).message)).to.include(
        'would no longer be in the pool',
      );
      const isOther = (address: string) => address.startsWith('10.79.2.');
      await Promise.all(vms.slice(0, 3).map((vm) => restartWithOther(story(), vm, isOther)));
      await waitDraining(story(), pool, 'Drained');
      const [renumbered] = (await setSubnets(story(), ['10.79.2.0/24'])).spec.subnets;
      expect(renumbered).to.deep.equal({ cidr: '10.79.2.0/24' });
      await story().start('vm4');
      const neighbour = await wire.createNeighbour('blue');
      const seen = new Set<string>();
      for (const vm of vms) {
        const address = await wire.addressOf(await wire.launcher(vm), DATA);
        expect(address).to.match(/^10\.79\.2\.\d+\/24$/);
        expect(await story().addresses.waitForIPs(`${vm}.data`)).to.deep.equal([address]);
        await wire.waitReachable(neighbour, [address]);
        seen.add(address);
      }
      expect(seen.size).to.equal(vms.length);
    },
  );
});

describeStory('A draining range', (story) => {
  const ask = (address: string) => ({
    running: false,
    annotations: { 'network.kubevirt.io/addresses': JSON.stringify({ data: [address] }) },
  });

  it('gives no new address, also not on request', async () => {
    await setSubnets(story(), [{ cidr: '10.78.3.0/29', draining: ['10.78.3.1-10.78.3.4'] }]);
    await story().createVm('vm1', { data: 'blue' }, ask('10.78.3.2'));
    const { message } = await story().addresses.waitForRefusal('vm1.data', AllocationReason.OutOfRange);
    expect(message).to.match(
      /^10\.78\.3\.2 is in a draining range of pool .*: request one of 10\.78\.3\.5-10\.78\.3\.6$/,
    );
    await story().createVm('vm2', { data: 'blue' }, { running: false });
    await story().createVm('vm3', { data: 'blue' }, { running: false });
    const given = [await story().addresses.waitForIPs('vm2.data'), await story().addresses.waitForIPs('vm3.data')];
    expect(given.flat().sort()).to.deep.equal(['10.78.3.5/29', '10.78.3.6/29']);
    await story().createVm('vm4', { data: 'blue' }, { running: false });
    await story().addresses.waitForRefusal('vm4.data', AllocationReason.Exhausted);
  });

  it('keeps a stopped VM as long as nothing else is free, and the claim says so', async () => {
    await setSubnets(story(), [{ cidr: '10.78.4.0/24', ranges: ['10.78.4.7'] }]);
    await story().createVm('vm1', { data: 'blue' }, { running: false });
    await story().addresses.waitForExactIPs('vm1.data', ['10.78.4.7/24']);
    await setSubnets(story(), [{ cidr: '10.78.4.0/24', ranges: ['10.78.4.7'], draining: ['10.78.4.7'] }]);
    const { reason, message } = await story().addresses.waitForCondition('vm1.data', ADDRESS_DRAINING, 'True');
    expect(reason).to.equal('NoOtherAddress');
    expect(message).to.match(/add a subnet to the NAD of network \S+ in namespace \S+/);
    expect(await story().addresses.waitForIPs('vm1.data')).to.deep.equal(['10.78.4.7/24']);
    const ranges = ['10.78.4.7', '10.78.4.9'];
    await setSubnets(story(), [{ cidr: '10.78.4.0/24', ranges, draining: ['10.78.4.7'] }]);
    await story().addresses.waitForExactIPs('vm1.data', ['10.78.4.9/24']);
  });
});
