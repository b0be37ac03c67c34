import { expect } from 'chai';
import fc from 'fast-check';
import type { AddressPool } from '../../api/address-pool.js';
import { MAX_ADD_TIMEOUT_MS } from '../../process/config/agent-config.js';
import { adminPool, holdfastConfig, nad } from '../../test/objects/pool-objects.js';
import { MAX_STALENESS_MS, PoolsWorld } from './testing/pools-world.js';

/** The maximum age of an agent's cache, plus the time of its ADD, plus the time of the API server for the last write. */
const FENCE_MS = MAX_STALENESS_MS + MAX_ADD_TIMEOUT_MS + 60_000;
const CIDR = '10.9.0.0/24';
const NAME = 'blue.vms';
const inSpace = (addressSpace?: string) => nad('vms/blue', holdfastConfig({ subnets: [{ cidr: CIDR }], addressSpace }));

describe('a derived pool whose NAD names another address space', () => {
  let world: PoolsWorld;

  beforeEach(async () => {
    world = new PoolsWorld();
    world.putNads(inSpace());
    await world.settle();
  });

  const addressSpace = () => world.pools.get(NAME)?.spec.addressSpace;
  const isDeleted = () => world.pools.get(NAME)?.metadata.deletionTimestamp !== undefined;
  const pass = (ms: number) => world.clock.advanceTo(world.clock.now() + ms);

  it('serves from the old address space until the last lease is gone, and reports which leases block the move', async () => {
    world.lease(NAME, '10.9.0.5', 'vms/c');
    world.putNads(inSpace('lan'));
    await world.settle();
    const said =
      /^False MovePending: NAD vms\/blue moves AddressPool blue\.vms to address space lan: .* addresses come from blue\..* 10\.9\.0\.5 \(IPAMClaim vms\/c\)/;
    expect(world.condition(NAME, 'NetworksAgree')).to.match(said);
    expect(world.condition(NAME, 'Ready')).to.match(/^True/);
    expect(world.events.join('\n')).to.match(/NetworkAttachmentDefinition blue AddressSpaceMovePending: NAD vms\/blue/);
    world.release('10.9.0.5');
    await world.settle();
    expect(isDeleted(), 'deleted while an address cools down').to.equal(false);
    expect(world.condition(NAME, 'NetworksAgree')).to.include('10.9.0.5 (released');
    world.expire('10.9.0.5');
    await world.settle();
    expect(isDeleted()).to.equal(true);
  });

  it('allocates no address until every ADD that could have read the old pool has ended', async () => {
    world.putNads(inSpace('lan'));
    await world.settle();
    expect(world.condition(NAME, 'Ready')).to.match(/^False Deleting/);
    expect(world.condition(NAME, 'DeletionBlocked')).to.match(/^True MovePending: .* every CNI ADD that began before/);
    expect(await world.sync(NAME))
      .to.have.property('requeueAfterMs')
      .within(1, FENCE_MS);
    pass(FENCE_MS - 10_000);
    await world.settle();
    expect(isDeleted()).to.equal(true);
    pass(10_000);
    await world.settle();
    expect(addressSpace()).to.equal('lan');
    expect(world.condition(NAME, 'NetworksAgree')).to.match(/^True/);
  });

  it('waits the whole time again if another process leads', async () => {
    world.putNads(inSpace('lan'));
    await world.settle();
    pass(FENCE_MS - 10_000);
    const next = world.elect();
    await world.settle(next);
    pass(FENCE_MS - 10_000);
    await world.settle(next);
    expect(isDeleted()).to.equal(true);
    pass(10_000);
    await world.settle(next);
    expect(addressSpace()).to.equal('lan');
  });

  it('stays while the API server has a released lease that the cache does not show', async () => {
    world.putNads(inSpace('lan'));
    await world.settle();
    world.lease(NAME, '10.9.0.9', 'vms/c');
    world.release('10.9.0.9');
    const [lease] = [...world.leases.values()];
    world.book.forget(lease!.metadata.name, lease!.metadata.uid!);
    pass(FENCE_MS);
    expect(await world.sync(NAME)).to.have.property('retry');
    expect(isDeleted()).to.equal(true);
  });

  it('is created again at once if the NAD returns to the old address space', async () => {
    world.putNads(inSpace('lan'));
    await world.settle();
    world.putNads(inSpace('blue'));
    await world.settle();
    expect(isDeleted()).to.equal(false);
    expect(addressSpace()).to.equal('blue');
  });

  it('stays until such ADDs have ended even if no pool follows, because its NAD may not use the address space', async () => {
    world.putNads(inSpace('lan'));
    await world.settle();
    pass(FENCE_MS);
    await world.settle();
    expect(addressSpace()).to.equal('lan');
    world.putPool(adminPool('guard', { network: 'red', cidr: CIDR, addressSpace: 'lan', namespaces: ['x'] }));
    world.deletePool(NAME);
    await world.settle();
    world.putNads(inSpace());
    pass(FENCE_MS - 10_000);
    await world.settle();
    expect(isDeleted()).to.equal(true);
    pass(10_000);
    await world.settle();
    expect(world.pools.get(NAME)?.spec).to.not.have.property('addressSpace');
  });

  it('stays until such ADDs have ended after its NAD is deleted, because another NAD may name another address space', async () => {
    world.dropNad('vms/blue');
    await world.settle();
    expect(isDeleted()).to.equal(true);
    expect(world.condition(NAME, 'DeletionBlocked')).to.match(/^True AddsUnderWay: No address is leased/);
    world.putNads(inSpace('lan'));
    pass(FENCE_MS - 10_000);
    await world.settle();
    expect(isDeleted()).to.equal(true);
    pass(10_000);
    await world.settle();
    expect(addressSpace()).to.equal('lan');
  });
});

/** Agents that read the pool some time before they lease, and a NAD that names different address spaces over time. */
class MoveModel {
  readonly world = new PoolsWorld();
  #sync = this.world.elect();
  /** The pool in the API server, by time. */
  readonly #history: { at: number; pool: AddressPool | undefined }[] = [];
  #adds: { endsBy: number; addressSpace: string }[] = [];
  #next = 1;

  async run(operation: Operation): Promise<void> {
    switch (operation.do) {
      case 'nad':
        this.#name(operation.space);
        break;
      case 'begin':
        this.#begin(operation.ageMs);
        return;
      case 'end':
        this.#end(this.#adds.shift());
        return;
      case 'release':
        for (const { spec } of this.world.leases.values())
          if (spec.releasedAt === undefined) this.world.release(spec.address);
        break;
      case 'expire':
        for (const { spec } of [...this.world.leases.values()])
          if (spec.releasedAt !== undefined) this.world.expire(spec.address);
        break;
      case 'restart':
        this.#sync = this.world.elect();
        break;
      case 'pass':
        this.#pass(operation.ms);
    }
    await this.world.settle(this.#sync);
    this.#history.push({ at: this.world.clock.now(), pool: this.world.pools.get(NAME) });
  }

  #name(space: Space): void {
    if (space === 'none') this.world.dropNad('vms/blue');
    else this.world.putNads(inSpace(space));
  }

  /** @param ageMs the age of the agent's cache */
  #begin(ageMs: number): void {
    const now = this.world.clock.now();
    const seen = this.#history.findLast(({ at }) => at <= now - ageMs)?.pool;
    if (seen === undefined || seen.metadata.deletionTimestamp !== undefined) return;
    this.#adds.push({ endsBy: now + MAX_ADD_TIMEOUT_MS, addressSpace: seen.spec.addressSpace ?? 'blue' });
  }

  #end(add: { addressSpace: string } | undefined): void {
    if (add === undefined) return;
    const others = [...this.world.leases.values()].filter(({ spec }) => spec.addressSpace !== add.addressSpace);
    expect(
      others.map(({ spec }) => spec.addressSpace),
      `an ADD leases in ${add.addressSpace}`,
    ).to.deep.equal([]);
    this.world.lease(NAME, `10.9.0.${this.#next++}`, 'vms/c', add.addressSpace);
  }

  #pass(ms: number): void {
    const until = this.world.clock.now() + ms;
    for (const add of this.#adds.filter(({ endsBy }) => endsBy <= until)) {
      this.world.clock.advanceTo(add.endsBy);
      this.#end(add);
    }
    this.#adds = this.#adds.filter(({ endsBy }) => endsBy > until);
    this.world.clock.advanceTo(until);
  }
}

type Space = 'blue' | 'green' | 'none';
type Operation =
  | { do: 'nad'; space: Space }
  | { do: 'begin'; ageMs: number }
  | { do: 'end' | 'release' | 'expire' | 'restart' }
  | { do: 'pass'; ms: number };

const a = <D extends Operation['do']>(what: D) => fc.constant(what);
const operation: fc.Arbitrary<Operation> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({ do: a('nad'), space: fc.constantFrom('blue' as const, 'green', 'green', 'none') }),
  },
  { weight: 4, arbitrary: fc.record({ do: a('begin'), ageMs: fc.constantFrom(0, 1_000, MAX_STALENESS_MS) }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constantFrom('end' as const, 'end', 'release', 'expire', 'restart') }) },
  { weight: 4, arbitrary: fc.record({ do: a('pass'), ms: fc.constantFrom(1_000, 60_000, FENCE_MS) }) },
);

describe('a derived pool that moves between address spaces', () => {
  it('never has leases in two of them, however NADs, ADDs and leaders come and go', async function () {
    this.timeout(30_000);
    await fc.assert(
      fc.asyncProperty(fc.array(operation, { minLength: 5, maxLength: 40 }), async (operations) => {
        const model = new MoveModel();
        for (const each of operations) await model.run(each);
      }),
      { numRuns: Number(process.env.MODEL_RUNS ?? 200) },
    );
  });
});
