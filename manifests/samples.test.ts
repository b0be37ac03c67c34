import { join } from 'node:path';
import { expect } from 'chai';
import type { AddressLease } from '../api/address-lease.js';
import type { AddressPool } from '../api/address-pool.js';
import { readIpamDelegation } from '../api/networks/ipam-delegation.js';
import { parseMac } from '../api/mac-address.js';
import { type NetworkAttachmentDefinition, parseNetworkConfig } from '../api/networks/network-attachment.js';
import { type Manifest, readManifests } from '../bed/control-plane/objects.js';
import { MANIFESTS } from '../bed/holdfast/manifests.js';
import { readLease, stateOf } from '../addressing/lease/lease.js';
import { compilePool, subnetOf } from '../addressing/pool/pool.js';

async function sample(name: string): Promise<Manifest[]> {
  return readManifests(join(MANIFESTS, 'samples', name));
}

describe('the samples', () => {
  it('show a network that allows persistent addresses, and a VM on it', async () => {
    const [network] = await sample('network.yaml');
    const [vm] = await sample('vm.yaml');
    const config = parseNetworkConfig(network as NetworkAttachmentDefinition);
    expect(config).to.deep.equal({ ok: true, network: { name: 'blue', allowPersistentIPs: true } });
    expect(JSON.stringify(vm)).to.include(`"networkName":"${network?.metadata.name ?? ''}"`);
  });

  it('show a network with addresses of its own, which replaces the other sample', async () => {
    const [network] = await sample('holdfast-network.yaml');
    const [other] = await sample('network.yaml');
    expect(network?.metadata.name).to.equal(other?.metadata.name);
    const config = parseNetworkConfig(network as NetworkAttachmentDefinition);
    expect(config).to.deep.equal({ ok: true, network: { name: 'blue', allowPersistentIPs: true } });
    const delegation = readIpamDelegation(network as NetworkAttachmentDefinition);
    const subnets = delegation.kind === 'holdfast' ? delegation.config.subnets : [];
    expect(subnets.map(({ cidr }) => cidr)).to.deep.equal(['10.100.0.0/24', 'fd00:100::/64']);
    expect(compilePool({ metadata: { name: 'blue' }, spec: { network: 'blue', subnets } })).to.include({ ok: true });
  });

  it('show a pool of an administrator, and the network that it serves', async () => {
    const [pool, network] = await sample('pool.yaml');
    const { spec } = pool as unknown as AddressPool;
    expect(compilePool(pool as unknown as AddressPool)).to.include({ ok: true });
    const config = parseNetworkConfig(network as NetworkAttachmentDefinition);
    expect(config).to.deep.equal({ ok: true, network: { name: spec.network, allowPersistentIPs: true } });
    const delegation = readIpamDelegation(network as NetworkAttachmentDefinition);
    expect(delegation.kind === 'holdfast' && delegation.config.subnets).to.deep.equal([]);
    expect(spec.namespaces).to.include('default');
  });

  it('show reservations for MAC addresses, of addresses in that pool', async () => {
    const [pool] = await sample('pool.yaml');
    const compiled = compilePool(pool as unknown as AddressPool);
    const [entry, ...others] = await sample('reservations.yaml');
    expect(others).to.deep.equal([]);
    const lease = readLease({
      ...entry,
      metadata: { ...entry?.metadata, uid: 'u', resourceVersion: '1' },
    } as AddressLease);
    expect(stateOf(lease)).to.equal('reserved');
    expect(parseMac(lease.mac ?? '')).to.equal(lease.mac);
    if (!compiled.ok) throw new TypeError('the pool cannot be read');
    expect(lease).to.include({ pool: compiled.pool.name, addressSpace: compiled.pool.addressSpace });
    expect(subnetOf(compiled.pool, lease.address)?.requestable.has(lease.address.value)).to.equal(true);
  });
});
