import { expect } from 'chai';
import fc from 'fast-check';
import type { AddressPool } from '../api/address-pool.js';
import type { IPAMClaim } from '../api/ipam-claim.js';
import type { VirtualMachineInstance } from '../api/kubevirt.js';
import { CLAIM_GUEST_MAC } from '../api/names.js';
import { CLAIM_INDEXES } from '../cluster/watch-specs.js';
import type { ParsedNad } from '../cluster/transforms.js';
import { PoolDirectory } from '../addressing/directory/directory.js';
import { Cache } from '../kube/informers/cache.js';
import type { ObjectChange } from '../kube/informers/informer.js';
import { adminPool, nad } from '../test/objects/pool-objects.js';
import { claim, vmReference, vmi } from '../test/objects/workload-objects.js';
import { RememberedGuests, layer2GuestsOf } from './layer2-guests.js';

const MACS = ['02:00:00:00:00:01', '02:00:00:00:00:02'];
const NAMES = ['vm1', 'vm2'];

/** Caches with the guests that are remembered of them. Changes are told as by informers. */
class World {
  readonly claims = new Cache<IPAMClaim>(CLAIM_INDEXES);
  readonly vmis = new Cache<VirtualMachineInstance>();
  readonly networks = new Cache<ParsedNad>();
  readonly pools = new Cache<AddressPool>();
  readonly directory = new PoolDirectory({ pools: this.pools, networks: this.networks });
  readonly remembered = new RememberedGuests(this);
  #tell: (change: ObjectChange<IPAMClaim>) => void = () => undefined;

  constructor() {
    this.remembered.follow({ claims: { onChange: (handler) => (this.#tell = handler) }, directory: this.directory });
    this.setNad(true);
    this.setPool('10.1.0.1');
    for (const name of NAMES) {
      this.setClaim(name, name, MACS[0]!);
      this.setVmi(name, MACS[0]!);
    }
  }

  setClaim(name: string, owner: string, mac: string): void {
    const made = claim({
      name: `${name}.data`,
      network: 'data',
      nad: 'vms/data',
      owner: vmReference(`${owner}-uid`, owner),
    });
    made.metadata.annotations = { ...made.metadata.annotations, [CLAIM_GUEST_MAC]: mac };
    const before = this.claims.set(made);
    this.#tell({ type: before === undefined ? 'added' : 'changed', object: made, ...(before && { before }) });
  }

  deleteClaim(name: string): void {
    const object = this.claims.delete(`vms/${name}.data`);
    if (object !== undefined) this.#tell({ type: 'removed', object });
  }

  setVmi(name: string, mac: string): void {
    const made = vmi({ data: 'vms/data' }, { name, vm: `${name}-uid` });
    for (const each of made.spec?.domain?.devices?.interfaces ?? []) each.macAddress = mac;
    this.vmis.set(made);
  }

  setNad(isLayer2: boolean): void {
    const ipam = isLayer2 ? {} : { ipam: { type: 'holdfast' } };
    this.networks.set(nad('vms/data', { name: 'data', type: 'bridge', ...ipam }));
    this.directory.changed();
  }

  setPool(gateway: string): void {
    const guest = { attachment: 'data', dhcp: {} };
    this.pools.set(adminPool('data', { network: 'data', subnets: [{ cidr: '10.1.0.0/24', gateway }], guest }));
    this.directory.changed();
  }
}

const vm = fc.constantFrom(...NAMES);
const mac = fc.constantFrom(...MACS);
const change = fc.oneof(
  fc.tuple(vm, vm, mac).map(
    ([name, owner, given]) =>
      (world: World) =>
        world.setClaim(name, owner, given),
  ),
  vm.map((name) => (world: World) => world.deleteClaim(name)),
  fc.tuple(vm, mac).map(
    ([name, given]) =>
      (world: World) =>
        world.setVmi(name, given),
  ),
  fc.boolean().map((isLayer2) => (world: World) => world.setNad(isLayer2)),
  fc.constantFrom('10.1.0.1', '10.1.0.2').map((gateway) => (world: World) => world.setPool(gateway)),
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
      { numRuns: 300 },
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
});
