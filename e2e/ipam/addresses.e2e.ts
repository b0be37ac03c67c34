import { expect } from 'chai';
import { AllocationReason, REQUEST_HONOURED } from '../../api/names.js';
import { podInterfaceName } from '../../api/pod.js';
import {
  ADDRESS_LEASES,
  IPAM_CLAIMS,
  PODS,
  VIRTUAL_MACHINES,
  VIRTUAL_MACHINE_INSTANCES,
} from '../../kube/resources.js';
import { leaseNamed } from '../../bed/story/addresses.js';
import { describeStory, itOnWire } from '../../bed/story/describe.js';
import { until } from '../../bed/processes/wait.js';
import { waitForWireAddresses } from '../../bed/story/wire/wire-addresses.js';

const DATA = podInterfaceName('data');

describeStory('The address of a VM', (story) => {
  it('is kept through stop, start, restart and migration, and is freed with the VM', async () => {
    await story().addresses.createNetwork('blue', ['10.20.0.0/29']);
    await story().runVm('vm1', { data: 'blue' });
    const mine = await story().addresses.waitForIPs('vm1.data');
    expect(mine).to.have.length(1);
    expect(mine[0]).to.match(/^10\.20\.0\.[1-6]\/29$/);
    const claim = await story().waitForClaim('vm1.data');
    const expectReference = async () => expect(await story().references('vm1')).to.deep.equal([{ [DATA]: 'vm1.data' }]);
    await expectReference();

    await story().stop('vm1');
    await story().createVm('vm2', { data: 'blue' });
    expect(await story().addresses.waitForIPs('vm2.data')).not.to.deep.equal(mine);
    await story().start('vm1');
    await expectReference();
    await story().restart('vm1');
    await expectReference();
    await story().migrate('vm1', 'Succeeded');
    await expectReference();
    expect((await story().waitForClaim('vm1.data')).metadata.uid).to.equal(claim.metadata.uid);
    expect(await story().addresses.waitForIPs('vm1.data')).to.deep.equal(mine);

    const [other = ''] = await story().addresses.waitForIPs('vm2.data');
    await story().deleteVm('vm1', 'Background');
    await story().waitGone('vm1');
    await story().addresses.waitHeld([other.replace('/29', '')]);
  });

  itOnWire('is on the interface of its launcher in both families on every node', async ({ bed, wire }) => {
    await story().addresses.createNetwork('blue', ['10.20.18.0/24', 'fd00:2f::/64']);
    await story().runVm('vm1', { data: 'blue' });
    const addresses = await story().addresses.waitForIPs('vm1.data');
    expect(addresses).to.have.length(2);
    const look = async () => {
      const [launcher] = await story().launchers('vm1');
      await waitForWireAddresses({ ...bed, wire }, launcher!, { interface: podInterfaceName('data'), addresses });
    };
    await look();
    await story().migrate('vm1', 'Succeeded');
    await look();
    await story().stop('vm1');
    await story().start('vm1');
    await look();
  });

  it('is an IPv4 address followed by an IPv6 address on a dual-stack network', async () => {
    await story().addresses.createNetwork('blue', ['fd00:20::/64', '10.20.1.0/24']);
    await story().createVm('vm1', { data: 'blue' }, { running: false });
    const [first = '', second = '', ...more] = await story().addresses.waitForIPs('vm1.data');
    expect(first).to.match(/^10\.20\.1\.\d+\/24$/);
    expect(second).to.match(/^fd00:20::[0-9a-f]+\/64$/);
    expect(more).to.deep.equal([]);
    const leases = await story().addresses.leases();
    expect([...leases.keys()].sort()).to.deep.equal([first.replace('/24', ''), second.replace('/64', '')].sort());
    for (const lease of leases.values()) expect(lease.spec.owner).to.include({ kind: 'IPAMClaim', name: 'vm1.data' });
  });

  it('is also allocated to a claim without an owner', async () => {
    const network = await story().addresses.createNetwork('blue', ['10.20.2.0/24']);
    await story().claims.createPlain('mine', network);
    const [address = ''] = await story().addresses.waitForIPs('mine');
    await story().claims.remove('mine');
    await story().addresses.waitHeld([]);
    expect(address).to.match(/^10\.20\.2\./);
  });

  it('is allocated separately for each interface, even on one network', async () => {
    await story().addresses.createNetwork('blue', ['10.20.3.0/24']);
    await story().createVm('vm1', { one: 'blue', two: 'blue' }, { running: false });
    const both = [
      ...(await story().addresses.waitForIPs('vm1.one')),
      ...(await story().addresses.waitForIPs('vm1.two')),
    ];
    expect(new Set(both).size).to.equal(2);
  });
});

describeStory('A full pool', (story) => {
  it('is reported on claim and VM, and its free addresses go to the oldest waiting claim first', async () => {
    await story().addresses.createNetwork('blue', ['10.20.4.0/30']);
    await story().createVm('vm1', { data: 'blue' }, { running: false });
    await story().createVm('vm2', { data: 'blue' }, { running: false });
    const mine = await story().addresses.waitForIPs('vm1.data');
    await story().addresses.waitForIPs('vm2.data');
    await story().createVm('vm3', { data: 'blue' }, { running: false });
    const condition = await story().addresses.waitForRefusal('vm3.data', 'SubnetExhausted');
    expect(condition.message).to.include('is full: 2 of 2 leased, 2 of them by stopped VMs');
    expect((await story().waitForEvent('vm3', 'AddressesNotAllocated')).message).to.include('is full: 2 of 2');
    await story().waitForEvent('vm3.data', 'AddressesNotAllocated');
    expect((await story().waitForClaim('vm3.data')).status?.ips).to.deep.equal([]);
    await story().createVm('vm4', { data: 'blue' }, { running: false });
    await story().addresses.waitForRefusal('vm4.data', 'SubnetExhausted');

    await story().deleteVm('vm1', 'Background');
    expect(await story().addresses.waitForIPs('vm3.data')).to.deep.equal(mine);
    await story().addresses.waitForRefusal('vm4.data', 'SubnetExhausted');
  });
});

describeStory('An address that a VM requests', (story) => {
  const ask = (...addresses: string[]) => ({
    running: false,
    annotations: { 'network.kubevirt.io/addresses': JSON.stringify({ data: addresses }) },
  });

  it('is allocated to the VM', async () => {
    await story().addresses.createNetwork('blue', ['10.20.5.0/24', 'fd00:25::/64']);
    await story().createVm('vm1', { data: 'blue' }, ask('10.20.5.77', 'fd00:25::77'));
    await story().addresses.waitForExactIPs('vm1.data', ['10.20.5.77/24', 'fd00:25::77/64']);
  });

  it('may have the prefix length of its subnet, as Forklift writes it, and no other one', async () => {
    await story().addresses.createNetwork('blue', ['10.20.54.0/24']);
    await story().createVm('vm1', { data: 'blue' }, ask('10.20.54.77/24'));
    await story().addresses.waitForExactIPs('vm1.data', ['10.20.54.77/24']);
    await story().createVm('vm2', { data: 'blue' }, ask('10.20.54.78/16'));
    const { message } = await story().waitForEvent('vm2', 'AddressesNotAllocated');
    expect(message).to.include('10.20.54.78/16').and.to.include('write 10.20.54.78/24');
  });

  it('is rejected with a reason if the pool cannot allocate it', async () => {
    await story().addresses.createNetwork('blue', [
      { cidr: '10.20.6.0/24', gateway: '10.20.6.1', exclude: ['10.20.6.9'] },
    ]);
    for (const [vm, address, words] of [
      ['vm1', '10.99.0.1', 'is not in pool'],
      ['vm2', '10.20.6.1', 'gateway'],
      ['vm3', '10.20.6.9', 'exclude'],
    ] as const) {
      await story().createVm(vm, { data: 'blue' }, ask(address));
      const { message } = await story().addresses.waitForRefusal(`${vm}.data`, AllocationReason.OutOfRange);
      expect(message).to.include(address).and.to.include(words);
      expect((await story().waitForEvent(vm, 'AddressesNotAllocated')).message).to.include(address);
    }
  });

  it('is rejected while another VM has it, and allocated when it is free', async () => {
    await story().addresses.createNetwork('blue', ['10.20.7.0/24']);
    await story().createVm('vm1', { data: 'blue' }, ask('10.20.7.7'));
    await story().addresses.waitForExactIPs('vm1.data', ['10.20.7.7/24']);
    await story().createVm('vm2', { data: 'blue' }, ask('10.20.7.7'));
    const { message } = await story().addresses.waitForRefusal('vm2.data', 'IPAddressConflict');
    expect(message).to.include('10.20.7.7').and.to.include(`${story().namespace}/vm1.data`);
    await story().deleteVm('vm1', 'Background');
    await story().addresses.waitForExactIPs('vm2.data', ['10.20.7.7/24']);
  });

  it('may change while the VM is stopped, and the old address is freed', async () => {
    await story().addresses.createNetwork('blue', ['10.20.8.0/24']);
    await story().createVm('vm1', { data: 'blue' }, ask('10.20.8.7'));
    await story().addresses.waitForExactIPs('vm1.data', ['10.20.8.7/24']);
    await story().requestAddresses('vm1', { data: ['10.20.8.8'] });
    await story().addresses.waitForExactIPs('vm1.data', ['10.20.8.8/24']);
    await story().addresses.waitHeld(['10.20.8.8']);
  });

  it('is rejected with a reason while the VM runs, and allocated at the next stop', async () => {
    await story().addresses.createNetwork('blue', ['10.20.9.0/24']);
    await story().runVm('vm1', { data: 'blue' }, { ...ask('10.20.9.7'), running: true });
    await story().requestAddresses('vm1', { data: ['10.20.9.8'] });
    expect((await story().waitForEvent('vm1', 'RequestedAddressesPending')).message).to.include('10.20.9.8');
    expect(await story().addresses.waitForIPs('vm1.data')).to.deep.equal(['10.20.9.7/24']);
    await story().stop('vm1');
    await story().addresses.waitForExactIPs('vm1.data', ['10.20.9.8/24']);
  });

  it('is allocated while KubeVirt keeps the VMI of a guest that has shut down', async () => {
    await story().addresses.createNetwork('blue', ['10.20.12.0/24']);
    await story().createVm('vm1', { data: 'blue' }, { ...ask('10.20.12.7'), running: false });
    const body = { spec: { runStrategy: 'Manual' } };
    await story().client.patch(VIRTUAL_MACHINES, story().ref('vm1'), { type: 'merge', body });
    await story().start('vm1');
    const [launcher] = await story().launchers('vm1');
    // the bed ends a guest with its launcher
    await story().client.delete(PODS, story().ref(launcher?.metadata.name ?? ''));
    const find = () => story().client.find(VIRTUAL_MACHINE_INSTANCES, story().ref('vm1'));
    await until('the guest to have ended', async () => (await find())?.status?.phase === 'Succeeded');
    await story().requestAddresses('vm1', { data: ['10.20.12.8'] });
    await story().addresses.waitForExactIPs('vm1.data', ['10.20.12.8/24']);
    expect((await find())?.status?.phase).to.equal('Succeeded');
  });

  it('leaves the old address in place if another owner has the new one, and the claim says so', async () => {
    await story().addresses.createNetwork('blue', ['10.20.10.0/24']);
    await story().createVm('vm1', { data: 'blue' }, ask('10.20.10.7'));
    await story().createVm('vm2', { data: 'blue' }, ask('10.20.10.8'));
    await story().addresses.waitForExactIPs('vm1.data', ['10.20.10.7/24']);
    await story().addresses.waitForExactIPs('vm2.data', ['10.20.10.8/24']);
    await story().requestAddresses('vm1', { data: ['10.20.10.8'] });
    const condition = await story().addresses.waitForCondition('vm1.data', REQUEST_HONOURED, 'False');
    expect(condition.message).to.include('10.20.10.8').and.to.include('vm2.data');
    expect(await story().addresses.waitForIPs('vm1.data')).to.deep.equal(['10.20.10.7/24']);
  });
});

describeStory('Lost leases', (story) => {
  it('are created again for their claim although other claims wait for an address or request it', async () => {
    await story().addresses.createNetwork('blue', ['10.20.16.0/30']);
    await story().createVm('vm1', { data: 'blue' }, { running: false });
    await story().createVm('vm2', { data: 'blue' }, { running: false });
    const mine = [await story().addresses.waitForIPs('vm1.data'), await story().addresses.waitForIPs('vm2.data')];
    await story().createVm('waiting', { data: 'blue' }, { running: false });
    await story().addresses.waitForRefusal('waiting.data', 'SubnetExhausted');
    const [address = ''] = mine.flat().map((ip) => ip.replace('/30', ''));
    const annotations = { 'network.kubevirt.io/addresses': JSON.stringify({ data: [address] }) };
    await story().createVm('asking', { data: 'blue' }, { running: false, annotations });
    await story().addresses.waitForRefusal('asking.data', 'IPAddressConflict');

    const lost = await story().addresses.leases();
    for (const { metadata } of lost.values()) await story().client.delete(ADDRESS_LEASES, { name: metadata.name });
    await until('other leases of the same addresses', async () => {
      const found = await story().addresses.leases();
      return [...lost].every(([ip, { metadata }]) => {
        const again = found.get(ip);
        return again !== undefined && again.metadata.uid !== metadata.uid;
      });
    });
    for (const [ip, lease] of await story().addresses.leases()) {
      expect(lease.spec.owner).to.include({ name: lost.get(ip)?.spec.owner?.name });
    }
    expect([
      await story().addresses.waitForIPs('vm1.data'),
      await story().addresses.waitForIPs('vm2.data'),
    ]).to.deep.equal(mine);
    await story().addresses.waitForRefusal('waiting.data', 'SubnetExhausted');
    await story().addresses.waitForRefusal('asking.data', 'IPAddressConflict');
    for (const claim of ['waiting.data', 'asking.data']) {
      expect((await story().waitForClaim(claim)).status?.ips).to.deep.equal([]);
    }
  });

  it('are created for one of two claims that were restored with the same address, and the other claim reports the conflict', async () => {
    const network = await story().addresses.createNetwork('blue', ['10.20.13.0/24']);
    await story().claims.createRestored('first', network, ['10.20.13.42/24']);
    await story().addresses.waitForExactIPs('first', ['10.20.13.42/24']);
    await story().claims.createRestored('second', network, ['10.20.13.42/24']);
    const { message } = await story().addresses.waitForRefusal('second', 'IPAddressConflict');
    expect(message).to.include('10.20.13.42').and.to.include(`${story().namespace}/first`);
    await story().addresses.waitHeld(['10.20.13.42']);
  });

  it('are collected if their owner is gone', async () => {
    const network = await story().addresses.createNetwork('blue', ['10.20.14.0/24']);
    const pool = await story().addresses.waitForDerivedPool(network);
    const owner = { kind: 'IPAMClaim' as const, namespace: story().namespace, name: 'ghost', uid: 'no-such-uid' };
    const lease = leaseNamed(network, '10.20.14.9', { pool: pool.metadata.name, owner });
    await story().client.create(ADDRESS_LEASES, lease);
    await until('the leak to be collected', async () => {
      return (await story().client.find(ADDRESS_LEASES, { name: lease.metadata.name })) === undefined;
    });
  });
});

describeStory('A claim of a network with another IPAM', (story) => {
  it('is never changed, and its VM gets an event that no IPAM honours it', async () => {
    const config = { cniVersion: '0.4.0', name: 'their-net', type: 'bridge', bridge: 'br-theirs' };
    const ipam = { type: 'host-local', subnet: '10.20.17.0/24' };
    await story().network('theirs', { config: { ...config, allowPersistentIPs: true, ipam } });
    await story().runVm('vm1', { data: 'theirs' });
    const event = await story().waitForEvent('vm1', 'IPAMClaimNotHonoured');
    expect(event.message).to.include('delegates IPAM to host-local');
    expect((await story().waitForClaim('vm1.data')).status).to.equal(undefined);
  });

  it('keeps the status that its own IPAM writes', async () => {
    const config = { cniVersion: '0.4.0', name: 'ovn-net', type: 'ovn-k8s-cni-overlay', allowPersistentIPs: true };
    await story().network('theirs', { config });
    await story().createVm('vm1', { data: 'theirs' }, { running: false });
    await story().waitForClaim('vm1.data');
    await story().claims.writeAddresses('vm1.data', ['10.128.0.5/24']);
    await story().addresses.createNetwork('blue', ['10.20.15.0/24']);
    await story().createVm('vm2', { data: 'blue' }, { running: false });
    await story().addresses.waitForIPs('vm2.data');
    const claim = await story().client.get(IPAM_CLAIMS, story().ref('vm1.data'));
    expect(claim.status).to.deep.equal({ ips: ['10.128.0.5/24'] });
  });
});
