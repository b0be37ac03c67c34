import { expect } from 'chai';
import fc from 'fast-check';
import type { AddressPool } from '../api/address-pool.js';
import type { IPAMClaim } from '../api/ipam-claim.js';
import type { VirtualMachineInstance } from '../api/kubevirt.js';
import { CLAIM_GUEST_MAC } from '../api/names.js';
import { VMI_INDEXES } from '../cluster/watch-specs.js';
import type { ParsedNad } from '../cluster/transforms.js';
import { PoolDirectory } from '../addressing/directory/directory.js';
import { Cache } from '../kube/informers/cache.js';
import type { ObjectChange } from '../kube/informers/informer.js';
import { adminPool, nad } from '../test/objects/pool-objects.js';
import { claim, vmReference, vmi } from '../test/objects/workload-objects.js';
import { RememberedGuests, layer2GuestsOf } from './layer2-guests.js';
import { GUEST_CLAIM_INDEXES } from './watch-specs.js';

const MACS = ['02:00:00:00:00:01', '02:00:00:00:00:02'];
const NAMES = ['vm1', 'vm2'];
const NETWORKS = ['data', 'red'];
const NADS = ['vms/data', 'vms/more', 'apps/data'];

/** Caches with the guests that are remembered of them. Changes are told as by informers. */
class World {
  readonly claims = new Cache<IPAMClaim>(GUEST_CLAIM_INDEXES);
  readonly vmis = new Cache<VirtualMachineInstance>(VMI_INDEXES);
  readonly networks = new Cache<ParsedNad>();
  readonly pools = new Cache<AddressPool>();
  readonly directory = new PoolDirectory({ pools: this.pools, networks: this.networks });
  readonly remembered = new RememberedGuests(this);
  #tellClaim: (change: ObjectChange<IPAMClaim>) => void = () => undefined;
  #tellNad: (change: ObjectChange<ParsedNad>) => void = () => undefined;

  constructor() {
    this.remembered.follow({
      claims: { onChange: (handler) => (this.#tellClaim = handler) },
      networks: { onChange: (handler) => (this.#tellNad = handler) },
      directory: this.directory,
    });
    this.setNad('vms/data', { name: 'data' });
    for (const network of NETWORKS) this.setPool(network, '10.1.0.1');
    for (const name of NAMES) {
      this.setClaim(name, name, MACS[0]!);
      this.setVmi(name, MACS[0]!);
    }
  }

  setClaim(name: string, owner: string, mac: string, { network = 'data', nad: key = 'vms/data' } = {}): void {
    const reference = vmReference(`${owner}-uid`, owner);
    const made = claim({ name: `${name}.data`, network, nad: key, owner: reference });
    made.metadata.annotations = { ...made.metadata.annotations, [CLAIM_GUEST_MAC]: mac };
    const before = this.claims.set(made);
    this.#tellClaim({ type: before === undefined ? 'added' : 'changed', object: made, ...(before && { before }) });
  }

  deleteClaim(name: string): void {
    const object = this.claims.delete(`vms/${name}.data`);
    if (object !== undefined) this.#tellClaim({ type: 'removed', object });
  }

  setVmi(name: string, mac: string, key = 'vms/data'): void {
    const made = vmi({ data: key }, { name, vm: `${name}-uid` });
    for (const each of made.spec?.domain?.devices?.interfaces ?? []) each.macAddress = mac;
    this.vmis.set(made);
  }

  setNad(key: string, config: object): void {
    const object = nad(key, { type: 'bridge', allowPersistentIPs: true, ...config });
    const before = this.networks.set(object);
    this.directory.changed();
    this.#tellNad({ type: before === undefined ? 'added' : 'changed', object, ...(before && { before }) });
  }

  deleteNad(key: string): void {
    const object = this.networks.delete(key);
    this.directory.changed();
    if (object !== undefined) this.#tellNad({ type: 'removed', object });
  }

  setPool(network: string, gateway: string): void {
    const guest = { attachment: 'data', dhcp: {} };
    this.pools.set(adminPool(network, { network, subnets: [{ cidr: '10.1.0.0/24', gateway }], guest }));
    this.directory.changed();
  }
}

const vm = fc.constantFrom(...NAMES);
const mac = fc.constantFrom(...MACS);
const nadKey = fc.constantFrom(...NADS);
const network = fc.constantFrom(...NETWORKS);
const config = fc.record({
  name: network,
  mtu: fc.constantFrom(1400, 1500),
  allowPersistentIPs: fc.boolean(),
  ipam: fc.constantFrom({}, { type: 'holdfast' }),
});
type Act = (world: World) => void;
const change: fc.Arbitrary<Act> = fc.oneof(
  fc.tuple(vm, vm, mac, fc.record({ network, nad: nadKey })).map(
    (given): Act =>
      (world) =>
        world.setClaim(...given),
  ),
  vm.map(
    (name): Act =>
      (world) =>
        world.deleteClaim(name),
  ),
  fc.tuple(vm, mac, nadKey).map(
    (given): Act =>
      (world) =>
        world.setVmi(...given),
  ),
  fc.tuple(nadKey, config).map(
    (given): Act =>
      (world) =>
        world.setNad(...given),
  ),
  nadKey.map(
    (key): Act =>
      (world) =>
        world.deleteNad(key),
  ),
  fc.tuple(network, fc.constantFrom('10.1.0.1', '10.1.0.2')).map(
    (given): Act =>
      (world) =>
        world.setPool(...given),
  ),
);

describe('guests that are remembered', () => {
  it('are those that would be found anew, after any changes', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(change, { maxLength: 20 }), async (changes) => {
        const world = new World();
        for (const apply of changes) {
          apply(world);
          // the directory tells its changes at the end of the turn
          await Promise.resolve();
          for (const each of world.vmis.list())
            expect(world.remembered.of(each)).to.deep.equal(layer2GuestsOf(each, world));
        }
      }),
      { numRuns: 500 },
    );
  });

  it('are found once while nothing changes, although claims of other VMs do', () => {
    const world = new World();
    const [first] = world.vmis.list();
    const found = world.remembered.of(first!);
    world.setClaim('vm2', 'vm2', MACS[1]!);
    expect(world.remembered.of(first!)).to.equal(found);
    world.setClaim('vm1', 'vm1', MACS[1]!);
    expect(world.remembered.of(first!)).not.to.equal(found);
  });

  it('are found anew when the NAD of the claim changes, although it is of another network, and not that of the VMI', () => {
    const world = new World();
    const [first] = world.vmis.list();
    world.setClaim('vm1', 'vm1', MACS[0]!, { network: 'data', nad: 'vms/more' });
    expect([...world.remembered.of(first!).keys()]).to.deep.equal([]);
    world.setNad('vms/more', { name: 'red' });
    expect([...world.remembered.of(first!).keys()]).to.deep.equal(['data']);
  });

  for (const name of NETWORKS)
    it(`are found once while NADs of other namespaces change, also of network ${name}`, () => {
      const world = new World();
      const [first] = world.vmis.list();
      const found = world.remembered.of(first!);
      expect([...found.keys()]).to.deep.equal(['data']);
      for (const mtu of [1400, 1500]) {
        world.setNad('apps/data', { name, mtu });
        world.directory.poolsOf(name);
        expect(world.remembered.of(first!)).to.equal(found);
      }
      world.setNad('vms/data', { name: 'data', mtu: 1400 });
      expect(world.remembered.of(first!)).not.to.equal(found);
    });
});
