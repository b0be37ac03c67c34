import { expect } from 'chai';
import { IPS_ALLOCATED } from '../../api/names.js';
import { ClaimSyncScenario } from './testing/model/claim-sync-scenario.js';

const MAC = '02:00:00:00:00:01';
const OTHER_MAC = '02:00:00:00:00:02';
const COOLDOWN_MS = 60_000;
/** Sticky time of the model's pool, which keeps the addresses of claims. 10.0.0.2 to 10.0.0.5 are leased to any claim. */
const STICKY_MS = 180_000;

describe('syncing a claim whose VM names a MAC address', () => {
  let scene: ClaimSyncScenario;

  beforeEach(() => {
    scene = new ClaimSyncScenario();
  });

  const lease = (address: string) => scene.cluster.world.get('addressleases', `blue.${address.replaceAll('.', '-')}`);

  async function begin(name: 'a' | 'b' | 'c' | 'd' | 'e', mac?: string): Promise<string[]> {
    scene.create(name, mac === undefined ? {} : { mac });
    await scene.cluster.settle();
    return scene.ipsOf(name) ?? [];
  }

  async function end(name: 'a' | 'b' | 'c' | 'd' | 'e'): Promise<void> {
    scene.finish(name);
    await scene.cluster.settle();
  }

  it('stores the MAC address in the lease, with the label that finds it', async () => {
    const [address = ''] = await begin('a', MAC);
    expect(lease(address)?.spec.mac).to.equal(MAC);
    expect(lease(address)?.metadata.labels).to.include({ 'ipam.holdfast.dev/mac': '02-00-00-00-00-01' });
  });

  it('stores a MAC address that is set later, so that the next claim gets the same address', async () => {
    const [address = ''] = await begin('a');
    scene.cluster.world.update('ipamclaims', 'vms/a', ({ metadata }) => {
      metadata.annotations = { ...metadata.annotations, 'ipam.holdfast.dev/mac': MAC };
    });
    await scene.cluster.settle();
    expect(lease(address)?.spec).to.include({ mac: MAC }).and.not.to.have.property('releasedAt');
    expect(lease(address)?.metadata.labels).to.include({ 'ipam.holdfast.dev/mac': '02-00-00-00-00-01' });
    await end('a');
    scene.cluster.world.now += COOLDOWN_MS;
    expect(await begin('b', MAC)).to.deep.equal([address]);
  });

  it('waits for its former address, and says until when, though others are free', async () => {
    const [address = ''] = await begin('a', MAC);
    await end('a');
    const until = new Date(scene.cluster.world.now + COOLDOWN_MS).toISOString();
    expect(await begin('b', MAC)).to.deep.equal([]);
    expect(scene.claim('b').status?.conditions?.find(({ type }) => type === IPS_ALLOCATED)).to.include({
      reason: 'IPAddressConflict',
      message: `${address} cools down until ${until}`,
    });
    const { result } = await scene.sync('b');
    expect(result).to.deep.equal({ requeueAfterMs: COOLDOWN_MS - 1_000 });
    scene.cluster.world.now += COOLDOWN_MS;
    await scene.sync('b');
    expect(scene.ipsOf('b')).to.deep.equal([address]);
  });

  it('does not look for sticky or reserved addresses while the gate is closed', async () => {
    scene.process.gates.stickyMAC = false;
    scene.cluster.operate({ do: 'reserve', address: '10.0.0.6', mac: MAC });
    const [address = ''] = await begin('a', MAC);
    expect(address).not.to.equal('10.0.0.6');
    await end('a');
    expect(await begin('b', MAC))
      .to.have.lengthOf(1)
      .and.not.to.include(address);
  });

  it('gets a reserved address that it requests, even if the gate is closed', async () => {
    scene.process.gates.stickyMAC = false;
    scene.cluster.operate({ do: 'reserve', address: '10.0.0.6', mac: MAC });
    scene.create('a', { mac: MAC, request: '["10.0.0.6"]' });
    await scene.cluster.settle();
    expect(scene.ipsOf('a')).to.deep.equal(['10.0.0.6']);
  });

  it('reports who holds the address that is reserved for it', async () => {
    scene.cluster.operate({ do: 'reserve', address: '10.0.0.6', mac: MAC });
    await begin('a', MAC);
    expect(await begin('b', MAC)).to.deep.equal([]);
    expect(scene.claim('b').status?.conditions?.find(({ type }) => type === IPS_ALLOCATED)).to.include({
      reason: 'IPAddressConflict',
      message: `10.0.0.6 is allocated to IPAMClaim vms/a, and is reserved for MAC address ${MAC}`,
    });
    await end('a');
    await scene.cluster.coolDown();
    expect(scene.ipsOf('b')).to.deep.equal(['10.0.0.6']);
  });

  it('gets its address back within the sticky time, while other claims get free addresses', async () => {
    const [address = ''] = await begin('a', MAC);
    await end('a');
    scene.cluster.world.now += STICKY_MS - 2_000;
    expect(await begin('b', OTHER_MAC)).not.to.include(address);
    expect(await begin('c', MAC)).to.deep.equal([address]);
  });

  it('gets its sticky address before older claims that wait, because they could not get it', async () => {
    const [address = ''] = await begin('a', MAC);
    for (const name of ['b', 'c', 'd'] as const) await begin(name);
    await end('a');
    // the claim waits until that address has cooled down
    expect(await begin('e')).to.deep.equal([]);
    expect(scene.reasonOf('e')).to.equal('SubnetExhausted');
    scene.cluster.world.now += COOLDOWN_MS;
    scene.create('a', { mac: MAC });
    await scene.sync('a');
    expect(scene.ipsOf('a')).to.deep.equal([address]);
  });

  it('loses its cooled-down address to another claim if the pool is full', async () => {
    const [address = ''] = await begin('a', MAC);
    for (const name of ['b', 'c', 'd'] as const) await begin(name);
    await end('a');
    expect(await begin('e')).to.deep.equal([]);
    scene.cluster.world.now += COOLDOWN_MS;
    await scene.sync('e');
    expect(scene.ipsOf('e')).to.deep.equal([address]);
    expect(lease(address)?.spec).not.to.have.property('mac');
    expect(await begin('a', MAC)).to.deep.equal([]);
    expect(scene.reasonOf('a')).to.equal('SubnetExhausted');
  });

  it('gets the address that an administrator reserved for its MAC address, and no other claim does', async () => {
    scene.cluster.operate({ do: 'reserve', address: '10.0.0.6', mac: MAC });
    expect(await begin('a', MAC)).to.deep.equal(['10.0.0.6']);
    expect(lease('10.0.0.6')?.spec).to.include({ mac: MAC, reserved: true });
    await end('a');
    scene.create('b', { request: '["10.0.0.6"]' });
    await scene.cluster.settle();
    await scene.cluster.coolDown();
    expect(scene.reasonOf('b')).to.equal('IPAddressConflict');
    expect(scene.claim('b').status?.conditions?.[0]?.message).to.include('10.0.0.6 is reserved by AddressLease');
    expect(lease('10.0.0.6')?.spec).not.to.have.property('owner');
    expect(await begin('c', MAC)).to.deep.equal(['10.0.0.6']);
  });
});
