import { expect } from 'chai';
import type { AddressPool } from '../../api/address-pool.js';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import type { VirtualMachineInstance } from '../../api/kubevirt.js';
import { CLAIM_GUEST_MAC } from '../../api/names.js';
import { CLAIM_INDEXES } from '../../cluster/watch-specs.js';
import type { ParsedNad } from '../../cluster/transforms.js';
import { parseAddress } from '../../addressing/address/address.js';
import { type LeaseRecord, createLease, readLease } from '../../addressing/lease/lease.js';
import { NETWORK_INDEXES } from '../../addressing/directory/affected.js';
import { PoolDirectory } from '../../addressing/directory/directory.js';
import { Cache } from '../../kube/informers/cache.js';
import { adminPool, nad } from '../../test/objects/pool-objects.js';
import { claim, vmReference, vmi } from '../../test/objects/workload-objects.js';
import { runAtOnce } from '../../kube/run-in-slices.js';
import { buildTable, poolGuests } from './table.js';

const MAC = '02:00:00:00:00:0a';
const IPV4 = '10.1.0.5';
const IPV6 = 'fd00:1::5';

/** One running guest with a dual-stack claim. */
class World {
  readonly claims = new Cache<IPAMClaim>({ ...CLAIM_INDEXES, ...NETWORK_INDEXES });
  readonly vmis = new Cache<VirtualMachineInstance>();
  readonly networks = new Cache<ParsedNad>();
  readonly pools = new Cache<AddressPool>();
  readonly leases = new Cache<LeaseRecord>();
  readonly directory = new PoolDirectory({ pools: this.pools, networks: this.networks });

  constructor() {
    const subnets = [{ cidr: '10.1.0.0/24' }, { cidr: 'fd00:1::/64' }];
    this.pools.set(adminPool('data', { network: 'data', subnets, guest: { attachment: 'data', dhcp: {} } }));
    this.networks.set(nad('vms/data', { name: 'data', type: 'bridge', allowPersistentIPs: true }));
    this.directory.changed();
    const owner = vmReference('vm-uid', 'vm1');
    const made = claim({
      name: 'vm1.data',
      network: 'data',
      nad: 'vms/data',
      owner,
      ips: [`${IPV4}/24`, `${IPV6}/64`],
    });
    made.metadata.annotations = { ...made.metadata.annotations, [CLAIM_GUEST_MAC]: MAC };
    this.claims.set(made);
    const interfaces = [{ name: 'data', infoSource: 'domain', mac: MAC }];
    const running = vmi({ data: 'vms/data' }, { name: 'vm1', vm: 'vm-uid' });
    this.vmis.set({ ...running, status: { phase: 'Running', interfaces } });
  }

  addLease(text: string, pool = 'data'): void {
    const [{ metadata } = claim({})] = this.claims.list();
    const owner = { kind: 'IPAMClaim' as const, namespace: 'vms', name: metadata.name, uid: metadata.uid ?? '' };
    const { object: lease } = createLease({ address: parseAddress(text), addressSpace: 'data', pool, owner });
    this.leases.set(readLease({ ...lease, metadata: { ...lease.metadata, uid: text, resourceVersion: '1' } }));
  }

  served(): (string | undefined)[] {
    const state = this.directory.stateOf('data');
    if (state?.kind !== 'served') throw new TypeError('the pool is valid');
    const entry = runAtOnce(buildTable(state.pool, runAtOnce(poolGuests(state.pool, this)))).entries.get(MAC);
    return [entry?.ipv4?.address, entry?.ipv6?.address];
  }
}

describe('the table of a pool with a dual-stack guest', () => {
  let world: World;
  beforeEach(() => {
    world = new World();
  });

  it('has both addresses, also if one is leased from an earlier pool of the address space', () => {
    world.addLease(IPV4, 'derived');
    world.addLease(IPV6);
    expect(world.served()).to.deep.equal([IPV4, IPV6]);
  });

  for (const [leased, expected] of [
    [IPV4, [IPV4, undefined]],
    [IPV6, [undefined, IPV6]],
  ] as const) {
    it(`keeps ${leased} when the lease of the other family is lost`, () => {
      world.addLease(leased);
      expect(world.served()).to.deep.equal(expected);
    });
  }
});
