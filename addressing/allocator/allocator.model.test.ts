import { expect } from 'chai';
import fc from 'fast-check';
import { AllocationReason } from '../../api/names.js';
import { type Operation, operation, reservation } from '../testing/allocator-operations.js';
import { leaseOwner } from '../../test/objects/lease-objects.js';
import { LeaseStore } from '../../test/object-tracker/lease-store.js';
import { MODEL_ADDRESSES, POOL_NAMES, type PoolName, openAddresses, poolOfShape } from '../testing/pool-shapes.js';
import { LeaseBook } from '../../ipam/leases/lease-book.js';
import { type Address, type Family, formatAddress, sameAddress } from '../address/address.js';
import {
  type AllocationRequest,
  type AllocationCandidate,
  type AllocationRefusal,
  addressOf,
  findCandidates,
} from './allocator.js';
import { leaseName } from '../lease/lease-name.js';
import {
  type LeaseRecord,
  createLease,
  expireLease,
  isSticky,
  isReservation,
  isSameWorkload,
  mayExpire,
  availabilityOf,
  releaseLease,
  stateOf,
  reallocateLease,
} from '../lease/lease.js';
import { timesWhenExhausted } from '../lease/lease-times.js';
import { quarantineLease } from '../lease/lease-quarantine.js';
import { byPreferenceOf } from '../lease/lease-record.js';
import { type Pool, subnetOf } from '../pool/pool.js';

const TIMES = { cooldownMs: 60_000, stickyMs: 120_000, isStickyForClaims: true };

describe('findCandidates with a lease book', function () {
  this.timeout(120_000);

  it('keeps all invariants for any sequence of allocations, releases, edits and restarts', () => {
    fc.assert(
      fc.property(fc.array(operation, { minLength: 20, maxLength: 80, size: 'max' }), (operations) => {
        const model = new Model();
        for (const each of operations) {
          model.run(each);
          model.check();
        }
      }),
      { numRuns: Number(process.env.MODEL_RUNS ?? 150) },
    );
  });
});

interface Ask {
  pool: Pool;
  wish: AllocationRequest;
}

/** One process that allocates, a server, and what must be true after each step. */
class Model {
  readonly #store = new LeaseStore();
  readonly #pools = new Map<PoolName, Pool>(POOL_NAMES.map((name, shape) => [name, poolOfShape(name, shape)]));
  /** Names of leases whose address was freed since the book was made, oldest first. */
  #vacated: string[] = [];
  #watch = this.#store.watch();
  #book = this.#makeBook();

  run(operation: Operation): void {
    switch (operation.do) {
      case 'lease':
        this.#lease(operation);
        return;
      case 'lease elsewhere':
        this.#leaseElsewhere(operation);
        return;
      case 'reserve':
        this.#store.write(reservation(this.#pool(operation.pool), operation.address, operation.mac));
        return;
      case 'edit':
        this.#pools.set(operation.pool, poolOfShape(operation.pool, operation.shape));
        this.#book.setPool(this.#pool(operation.pool));
        return;
      case 'wait':
        this.#store.now += operation.seconds * 1000;
        return;
      case 'watch':
        this.#watch.deliver();
        return;
      case 'restart':
        this.#watch = this.#store.watch();
        this.#book = this.#makeBook();
        return;
      case 'expire':
        this.#expire();
        return;
      case 'release':
      case 'quarantine':
      case 'delete by hand':
        this.#end(operation.do, operation.index);
    }
  }

  check(): void {
    for (const name of POOL_NAMES) {
      const pool = this.#pool(name);
      const space = this.#book.space(pool.addressSpace);
      for (const family of [4, 6] as const) {
        expect(space.free(name, family), `${name} ${family}`).to.equal(BigInt(this.#free(pool, family).length));
      }
      for (const address of MODEL_ADDRESSES) {
        expect(space.isOccupied(address)).to.equal(this.#leaseAt(pool, address) !== undefined);
      }
    }
  }

  #makeBook(): LeaseBook {
    const book = new LeaseBook(this.#pools.values());
    book.attach(this.#watch, { now: () => this.#store.now });
    this.#vacated = [];
    const note = (name: string, isFree: boolean) => {
      this.#vacated = this.#vacated.filter((each) => each !== name);
      if (isFree) this.#vacated.push(name);
    };
    book.onChange(({ before, after }) => note((before ?? after)!.metadata.name, after === undefined));
    book.onAddressFreed((space, address) => note(leaseName(space, address), true));
    return book;
  }

  #lease({ pool: name, owner, families, mac, wish }: Extract<Operation, { do: 'lease' }>): void {
    const pool = this.#pool(name);
    const wished: AllocationRequest = {
      owner: leaseOwner(`c${owner}`),
      families: families.filter((family) => pool.families.includes(family)),
      addresses: wish === undefined ? [] : [wish],
      ...(mac !== undefined && { mac }),
    };
    const ask = { pool, wish: wished };
    const chosen = findCandidates(pool, wished, this.#book.view(pool), { ...TIMES, now: this.#store.now });
    if (!chosen.ok) {
      this.#checkRefusal(chosen.refusal, ask);
      return;
    }
    const got = chosen.candidates.map((choice) => addressOf(choice).family);
    expect(got.sort()).to.deep.equal([...new Set([...wished.addresses.map(familyOf), ...wished.families])].sort());
    for (const choice of chosen.candidates) this.#checkChoice(choice, ask);
    for (const family of wished.families) this.#checkKept(family, chosen.candidates, ask);
    for (const choice of chosen.candidates) this.#write(choice, ask);
  }

  #write(choice: AllocationCandidate, { pool, wish }: Ask): void {
    const address = addressOf(choice);
    const { addressSpace } = pool;
    const { owner, mac } = wish;
    const request = { address, addressSpace, pool: pool.name, owner, ...(mac !== undefined && { mac }) };
    expect(this.#book.markPending(addressSpace, address)).to.equal(true);
    const before = this.#store.leases.get(leaseName(addressSpace, address));
    const write = choice.kind === 'take' ? reallocateLease(choice.lease, request) : createLease(request);
    const answer = this.#store.write(write);
    if (answer !== undefined) {
      const wasHeld = before?.spec.owner !== undefined && before.spec.releasedAt === undefined;
      expect(wasHeld, `${answer.metadata.name} was held`).to.equal(false);
      this.#book.recordWrite(answer);
    }
    this.#book.clearPending(addressSpace, address);
  }

  #checkChoice(choice: AllocationCandidate, { pool, wish }: Ask): void {
    const address = addressOf(choice);
    const subnet = subnetOf(pool, address);
    expect(subnet?.requestable.has(address.value), `${formatAddress(address)} is leasable`).to.equal(true);
    const isAsked = wish.addresses.some((each) => sameAddress(each, address));
    const known = this.#leaseAt(pool, address);
    if (choice.kind === 'take') {
      const request = { ...wish, address, addressSpace: pool.addressSpace, pool: pool.name };
      expect(choice.lease).to.equal(known);
      const isIts = wish.mac !== undefined && choice.lease.mac === wish.mac;
      const isPressed = !isAsked && !isIts;
      const times = isPressed ? timesWhenExhausted(TIMES) : TIMES;
      expect(availabilityOf(choice.lease, request, times, this.#store.now)).to.equal(true);
      // to who had it a moment ago it is as good as free
      const wasItsOwn = choice.lease.owner !== undefined && isSameWorkload(choice.lease.owner, wish.owner);
      if (isPressed && !wasItsOwn) this.#checkLast(choice.lease, pool);
      return;
    }
    expect(known).to.equal(undefined);
    if (!isAsked) this.#checkTurn(address, pool);
  }

  /** A request for any address gets the sticky address of its MAC address first. */
  #checkKept(family: Family, choices: readonly AllocationCandidate[], { pool, wish }: Ask): void {
    if (wish.addresses.some((address) => address.family === family)) return;
    const [kept] = [...this.#book.ofPool(pool.name)]
      .filter((lease) => lease.mac !== undefined && lease.mac === wish.mac && lease.address.family === family)
      .filter((lease) => stateOf(lease) !== 'held' && lease.addressSpace === pool.addressSpace)
      .filter(({ address }) => subnetOf(pool, address)?.requestable.has(address.value) === true)
      .sort(byPreferenceOf(wish.owner));
    if (kept === undefined) return;
    const request = { ...wish, address: kept.address, addressSpace: pool.addressSpace, pool: pool.name };
    if (availabilityOf(kept, request, TIMES, this.#store.now) !== true) return;
    expect(choices).to.deep.include({ kind: 'take', lease: kept });
  }

  /** Released addresses are reallocated only if none is free: first those that are not sticky, each oldest first. */
  #checkLast(lease: LeaseRecord, pool: Pool): void {
    const { family } = lease.address;
    expect(this.#free(pool, family)).to.deep.equal([]);
    const cooled = this.#cooled(pool, family);
    const better = cooled.filter((each) => isSticky(each, TIMES) === isSticky(lease, TIMES));
    if (isSticky(lease, TIMES)) expect(cooled).to.deep.equal(better);
    expect(lease.releasedAt).to.equal(Math.min(...better.map(({ releasedAt }) => releasedAt!)));
  }

  /** The leases that everybody may get if nothing else is left. */
  #cooled(pool: Pool, family: Family): LeaseRecord[] {
    const open = new Set(openAddresses(pool, family).map((address) => leaseName(pool.addressSpace, address)));
    const times = timesWhenExhausted(TIMES);
    return [...this.#book.ofPool(pool.name)].filter(
      (lease) => open.has(lease.metadata.name) && !isReservation(lease) && mayExpire(lease, times, this.#store.now),
    );
  }

  /** The address must be open, and the oldest vacated one if all others are used. */
  #checkTurn(address: Address, pool: Pool): void {
    const nameOf = (each: Address) => leaseName(pool.addressSpace, each);
    const free = this.#free(pool, address.family).map(nameOf);
    expect(free).to.include(nameOf(address));
    const unused = free.filter((name) => !this.#vacated.includes(name));
    const turn = unused.length > 0 ? unused : this.#vacated.filter((name) => free.includes(name)).slice(0, 1);
    expect(turn).to.include(nameOf(address));
  }

  #checkRefusal({ reason, family, retryAt, address }: AllocationRefusal, { pool, wish }: Ask): void {
    const now = this.#store.now;
    if (retryAt !== undefined) expect(retryAt).to.be.greaterThan(now);
    if (reason !== AllocationReason.Exhausted) {
      if (wish.addresses.length === 0) this.#checkWait(this.#leaseAt(pool, address!)!, wish, retryAt);
      return;
    }
    expect(this.#free(pool, family!)).to.deep.equal([]);
    const open = new Set(openAddresses(pool, family!).map((address) => leaseName(pool.addressSpace, address)));
    const released = [...this.#book.ofPool(pool.name)].filter(
      (lease) => lease.releasedAt !== undefined && !isReservation(lease) && open.has(lease.metadata.name),
    );
    expect(retryAt === undefined).to.equal(released.length === 0);
    expect(this.#cooled(pool, family!)).to.deep.equal([]);
  }

  #checkWait(lease: LeaseRecord, { mac }: AllocationRequest, retryAt: number | undefined): void {
    expect(mac).to.equal(lease.mac);
    expect(retryAt).to.equal(lease.releasedAt && lease.releasedAt + TIMES.cooldownMs);
  }

  /** Allocates in another process, which the book learns from the watch. */
  #leaseElsewhere({ pool: name, address }: Extract<Operation, { do: 'lease elsewhere' }>): void {
    const { addressSpace } = this.#pool(name);
    this.#store.write(createLease({ address, addressSpace, pool: name, owner: leaseOwner('other') }));
  }

  #end(how: 'release' | 'quarantine' | 'delete by hand', index: number): void {
    const leases = [...this.#book.all()];
    const lease = leases[index % Math.max(1, leases.length)];
    if (lease === undefined) return;
    if (how === 'delete by hand') this.#store.remove(lease.metadata.name);
    else if (stateOf(lease) === 'held') {
      const isQuarantined = how === 'quarantine' && !isReservation(lease);
      const end = isQuarantined
        ? quarantineLease(lease, '02:00:00:00:00:99', this.#store.now)
        : releaseLease(lease, this.#store.now);
      const answer = this.#store.write(end);
      if (answer !== undefined) this.#book.recordWrite(answer);
    }
  }

  #expire(): void {
    for (const lease of [...this.#book.expiring()]) {
      if (!mayExpire(lease, TIMES, this.#store.now)) continue;
      const left = this.#store.write(expireLease(lease));
      if (left !== undefined) this.#book.recordWrite(left);
      else if (!isReservation(lease)) this.#book.forget(lease.metadata.name, lease.metadata.uid);
    }
  }

  #pool(name: PoolName): Pool {
    return this.#pools.get(name)!;
  }

  #leaseAt(pool: Pool, address: Address): LeaseRecord | undefined {
    return this.#book.get(leaseName(pool.addressSpace, address));
  }

  #free(pool: Pool, family: Family): Address[] {
    return openAddresses(pool, family).filter((address) => this.#leaseAt(pool, address) === undefined);
  }
}

function familyOf({ family }: Address): Family {
  return family;
}
