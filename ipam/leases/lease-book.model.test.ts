import { expect } from 'chai';
import fc from 'fast-check';
import type { AddressLease, LeaseState } from '../../api/address-lease.js';
import { compiledPool, requestFor } from '../../test/objects/lease-objects.js';
import { LeaseStore } from '../../test/object-tracker/lease-store.js';
import { parseAddress } from '../../addressing/address/address.js';
import { leaseName } from '../../addressing/lease/lease-name.js';
import { quarantineLease } from '../../addressing/lease/lease-quarantine.js';
import {
  type LeaseRecord,
  createLease,
  expireLease,
  readLease,
  releaseLease,
  stateOf,
} from '../../addressing/lease/lease.js';
import { LeaseBook } from './lease-book.js';

const MACS = ['02:00:00:00:00:01', '02:00:00:00:00:02'] as const;

describe('LeaseBook', () => {
  it('behaves like a naive lease book, no matter how the watch lags and repeats events', () => {
    fc.assert(
      fc.property(fc.array(operation, { maxLength: 80 }), (operations) => {
        const model = new Model();
        for (const each of operations) {
          model.run(each);
          model.check();
        }
        model.watch.deliver();
        model.answerAll();
        model.check();
        expect(names(model.book.all())).to.deep.equal([...model.server.leases.keys()].sort());
      }),
      { numRuns: 500 },
    );
  });
});

type Operation =
  | {
      do: 'create' | 'release' | 'quarantine' | 'expire' | 'hand-delete' | 'hold' | 'unhold';
      address: number;
      late: boolean;
    }
  | { do: 'answer' | 'advance' | 'repeat'; n: number };

const operation: fc.Arbitrary<Operation> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constantFrom('create', 'release', 'quarantine', 'expire', 'hand-delete', 'hold', 'unhold'),
      address: fc.integer({ min: 1, max: 4 }),
      late: fc.boolean(),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('answer', 'advance', 'repeat'), n: fc.nat({ max: 20 }) }) },
);

/** What the watch told and the server answered, and what a book should make of it. */
class Model {
  readonly server = new LeaseStore();
  readonly watch = this.server.watch();
  readonly book = new LeaseBook([compiledPool()]);
  /** Every version that was heard of. */
  readonly #heard: LeaseRecord[] = [];
  readonly #gone = new Set<string>();
  readonly #holds = new Set<number>();
  /** What the book's changes amount to. */
  readonly #replayed = new Map<string, LeaseRecord>();
  #answers: (() => void)[] = [];

  constructor() {
    this.book.onChange(({ before, after }) => {
      const { name } = (before ?? after)!.metadata;
      expect(this.#replayed.get(name)).to.equal(before);
      if (after === undefined) this.#replayed.delete(name);
      else this.#replayed.set(name, after);
    });
    const onChange: Model['watch']['onChange'] = (handler) =>
      this.watch.onChange((change) => {
        if (change.type === 'removed') this.#gone.add(change.object.metadata.uid);
        else this.#heard.push(change.object);
        handler(change);
      });
    this.book.attach({ hasSynced: true, onChange }, { now: () => 0 });
  }

  run(operation: Operation): void {
    if ('n' in operation) this.#pass(operation.do, operation.n);
    else this.#act(operation);
  }

  answerAll(): void {
    for (const answer of this.#answers.splice(0)) answer();
  }

  check(): void {
    const expected = this.#expected();
    expect(names(this.book.all())).to.deep.equal(names(expected));
    for (const each of expected) {
      expect(this.book.get(each.metadata.name)?.metadata).to.deep.include(identity(each));
      expect(this.#replayed.get(each.metadata.name)).to.equal(this.book.get(each.metadata.name));
    }
    expect(this.#replayed.size).to.equal(expected.length);
    this.#checkIndexes(expected);
    for (let n = 1; n <= 6; n++) {
      const occupied = this.#holds.has(n) || expected.some(({ address }) => address.value === addressOf(n).value);
      expect(this.book.space('blue').isOccupied(addressOf(n)), String(n)).to.equal(occupied);
    }
  }

  #checkIndexes(expected: readonly LeaseRecord[]): void {
    const { book } = this;
    expect(names(book.ofPool('blue'))).to.deep.equal(names(expected));
    expect([book.size, [...book.ofPool('blue')].length]).to.deep.equal([expected.length, expected.length]);
    const isIn = (states: readonly LeaseState[]) => expected.filter((each) => states.includes(stateOf(each)));
    expect(names(book.expiring())).to.deep.equal(names(isIn(['released', 'quarantined'])));
    const byMac = [...book.quarantined('blue').values()].flatMap((leases) => [...leases]);
    expect(names(byMac)).to.deep.equal(names(isIn(['quarantined'])));
    for (const name of ['c0', 'c1']) {
      const own = names(expected.filter((each) => each.owner?.name === name));
      expect(names(book.ofExactClaim({ metadata: { namespace: 'a', name, uid: `${name}-uid` } }))).to.deep.equal(own);
      expect(names(book.ofExactClaim({ metadata: { namespace: 'a', name, uid: 'earlier' } }))).to.deep.equal([]);
      expect(names(book.ofClaim('a', name))).to.deep.equal(own);
    }
  }

  /** Of each name the newest version heard of, unless that lease is known to be gone. */
  #expected(): LeaseRecord[] {
    const newest = new Map<string, LeaseRecord>();
    for (const each of this.#heard) {
      const known = newest.get(each.metadata.name);
      if (known === undefined || versionOf(each) > versionOf(known)) newest.set(each.metadata.name, each);
    }
    return [...newest.values()].filter(({ metadata }) => !this.#gone.has(metadata.uid));
  }

  #pass(what: 'answer' | 'advance' | 'repeat', n: number): void {
    if (what === 'advance') this.watch.deliver(n % 4);
    else if (what === 'repeat') this.watch.redeliver(n);
    else if (this.#answers.length > 0) this.#answers.splice(n % this.#answers.length, 1)[0]!();
  }

  #act({ do: what, address: n, late }: Extract<Operation, { address: number }>): void {
    const name = leaseName('blue', addressOf(n));
    const known = this.book.get(name);
    if (what === 'hold') {
      expect(this.book.markPending('blue', addressOf(n))).to.equal(!this.#holds.has(n));
      this.#holds.add(n);
    } else if (what === 'unhold') {
      this.book.clearPending('blue', addressOf(n));
      this.#holds.delete(n);
    } else if (what === 'hand-delete') this.server.remove(name);
    else if (what === 'expire') this.#expire(known);
    else if (what === 'create')
      this.#answered(this.server.write(createLease(requestFor(`10.0.0.${n}`, `c${n % 2}`))), late);
    else if (known !== undefined && stateOf(known) === 'held') {
      const { now } = this.server;
      this.#answered(
        this.server.write(what === 'release' ? releaseLease(known, now) : quarantineLease(known, MACS[n % 2]!, now)),
        late,
      );
    }
  }

  #expire(known: LeaseRecord | undefined): void {
    if (known === undefined || !['released', 'quarantined'].includes(stateOf(known))) return;
    const { name, uid } = known.metadata;
    // the write fails if the lease was replaced; if it is gone, the book forgets it
    this.server.write(expireLease(known));
    this.#gone.add(uid);
    this.book.forget(name, uid);
  }

  #answered(lease: AddressLease | undefined, late: boolean): void {
    if (lease === undefined) return;
    const answer = () => {
      this.#heard.push(readLease(lease));
      this.book.recordWrite(lease);
    };
    if (late) this.#answers.push(answer);
    else answer();
  }
}

function addressOf(n: number) {
  return parseAddress(`10.0.0.${n}`);
}

function versionOf({ metadata }: LeaseRecord): number {
  return Number(metadata.resourceVersion);
}

function identity({ metadata: { uid, resourceVersion } }: LeaseRecord) {
  return { uid, resourceVersion };
}

function names(records: Iterable<LeaseRecord>): string[] {
  return [...records].map(({ metadata }) => metadata.name).sort();
}
