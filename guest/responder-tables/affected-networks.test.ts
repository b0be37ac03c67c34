import { expect } from 'chai';
import type { AddressPool } from '../../api/address-pool.js';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import { PoolDirectory } from '../../addressing/directory/directory.js';
import { VMI_INDEXES } from '../../cluster/watch-specs.js';
import type { ParsedNad } from '../../cluster/transforms.js';
import { Cache } from '../../kube/informers/cache.js';
import type { ObjectChange } from '../../kube/informers/informer.js';
import { adminPool, cacheOf, nad } from '../../test/objects/pool-objects.js';
import { claim, vmi } from '../../test/objects/workload-objects.js';
import type { GuestViews } from '../views.js';
import { GUEST_CLAIM_INDEXES } from '../watch-specs.js';
import { AffectedNetworks } from './affected-networks.js';

/** A VM of namespace `vms` on the networks blue and green, which are bridges of their own. */
class World {
  readonly #networks = new Cache<ParsedNad>();
  readonly #pools = new Cache<AddressPool>();
  readonly #directory = new PoolDirectory({ pools: this.#pools, networks: this.#networks });
  #tell: (change: ObjectChange<ParsedNad>) => void = () => undefined;
  readonly affected: AffectedNetworks;

  /** @param namespaces of the pools */
  constructor(namespaces?: string[]) {
    const claims = new Cache<IPAMClaim>(GUEST_CLAIM_INDEXES);
    for (const network of ['blue', 'green']) {
      this.setPool(network, { ...(namespaces && { namespaces }) });
      this.setNad(`vms/${network}`, network, network);
      claims.set(claim({ name: `vm1.${network}`, vmNetwork: network, network, nad: `vms/${network}` }));
    }
    const vmis = cacheOf([vmi({ blue: 'vms/blue', green: 'vms/green' })], VMI_INDEXES);
    const ignored = (cache: object) => ({ cache, onChange: () => undefined });
    const networks = { onChange: (handler: (change: ObjectChange<ParsedNad>) => void) => (this.#tell = handler) };
    const watched = { claims: ignored(claims), vmis: ignored(vmis), claimLeases: ignored(new Cache()), networks };
    // only the caches and their changes are used here
    this.affected = new AffectedNetworks({ watched, directory: this.#directory } as unknown as GuestViews);
    this.affected.follow(() => undefined);
    this.affected.take();
  }

  setPool(network: string, more: Partial<AddressPool['spec']>): void {
    this.#pools.set(adminPool(network, { network, guest: { attachment: network, dhcp: {} }, ...more }));
    this.#directory.changed();
  }

  setNad(key: string, network: string, bridge: string, mtu = 1500): void {
    const object = nad(key, { name: network, type: 'bridge', bridge, mtu });
    const before = this.#networks.set(object);
    this.#directory.changed();
    this.#tell({ type: before === undefined ? 'added' : 'changed', object, ...(before && { before }) });
  }

  taken(): string[] {
    return [...this.affected.take().networks].sort();
  }
}

describe('the networks whose tables depend on a change', () => {
  it('are those of all interfaces of the VMs on a NAD that changes', () => {
    const world = new World();
    world.setNad('vms/blue', 'blue', 'blue', 1400);
    expect(world.taken()).to.deep.equal(['blue', 'green']);
    expect(world.taken()).to.deep.equal([]);
  });

  it('are none if a NAD of another namespace names a network, whose guests do not use it', () => {
    for (const namespaces of [undefined, ['vms']]) {
      const world = new World(namespaces);
      for (const [bridge, mtu] of [
        ['own', 1500],
        ['own', 1400],
        ['other', 1400],
      ] as const) {
        world.setNad('apps/blue', 'blue', bridge, mtu);
        expect(world.taken(), `${bridge} ${mtu}`).to.deep.equal([]);
      }
    }
  });

  it('are both when a NAD brings one onto the layer-2 segment of the other, and when it leaves it', () => {
    const world = new World();
    for (const bridge of ['green', 'own']) {
      world.setNad('apps/blue', 'blue', bridge);
      expect(world.taken(), bridge).to.deep.equal(['blue', 'green']);
    }
  });

  it("are that of an administrator's pool that changes, and the other ones of its VMs", () => {
    const world = new World();
    world.setPool('green', { guest: { attachment: 'green', dhcp: {}, ntp: ['10.0.0.1'] } });
    expect(world.taken()).to.deep.equal(['blue', 'green']);
  });
});
