import { expect } from 'chai';
import fc from 'fast-check';
import { leaseOf } from '../../test/objects/lease-objects.js';
import { LeakCandidates } from './leak-candidates.js';
import { type LeaseRecord, readLease } from './lease.js';

const AFTER_MS = 60_000;

interface Step {
  readonly name: string;
  readonly leak: string | undefined;
  readonly change: 'none' | 'write' | 'replace' | 'delete';
  /** An observation follows after this time, if any. */
  readonly observeAfterMs: number | undefined;
}

/** Leases, and why each looks leaked. */
class World {
  now = 0;
  readonly leases = new Map<string, LeaseRecord>();
  readonly leaks = new Map<string, string>();
  readonly candidates: LeakCandidates<string>;

  constructor(maxChecks = 10) {
    const leakOf = ({ metadata: { name } }: LeaseRecord) => this.leaks.get(name);
    this.candidates = new LeakCandidates({ leakOf, afterMs: AFTER_MS, maxChecks });
  }

  put(name: string, leak?: string, version = 1, uid = `${name}-uid`): void {
    const lease = leaseOf('10.0.0.5', version);
    const metadata = { ...lease.metadata, name, uid };
    this.leases.set(name, { ...readLease(lease), metadata: { ...metadata, resourceVersion: String(version) } });
    if (leak === undefined) this.leaks.delete(name);
    else this.leaks.set(name, leak);
  }

  /** Returns the names of the leases to check after a time. */
  observe(afterMs = 0): string[] {
    this.now += afterMs;
    const steps = this.candidates.observe([...this.leases.values()], this.now);
    for (;;) {
      const { done, value } = steps.next();
      if (done === true) return value.map(({ lease }) => lease.metadata.name);
    }
  }

  /** What an observation sees of a lease. */
  stateOf(name: string): string | undefined {
    const metadata = this.leases.get(name)?.metadata;
    const leak = this.leaks.get(name);
    return metadata && leak && JSON.stringify([metadata.uid, metadata.resourceVersion, leak]);
  }

  change({ name, leak, change }: Step): void {
    const known = this.leases.get(name)?.metadata;
    const version = Number(known?.resourceVersion ?? 1);
    if (change === 'delete') this.leases.delete(name);
    else if (change === 'replace') this.put(name, leak, 1, `${known?.uid ?? name}'`);
    else this.put(name, leak, change === 'write' ? version + 1 : version, known?.uid);
  }
}

const NAMES = ['a', 'b', 'c'];
const step: fc.Arbitrary<Step> = fc.record({
  name: fc.constantFrom(...NAMES),
  leak: fc.constantFrom(undefined, 'orphan', 'orphan', 'orphan', 'surplus'),
  change: fc.constantFrom('none', 'none', 'none', 'write', 'replace', 'delete'),
  observeAfterMs: fc.option(fc.constantFrom(1, AFTER_MS / 2, AFTER_MS), { nil: undefined }),
});

describe('LeakCandidates', () => {
  it('returns leases that have looked leaked for long enough', () => {
    const world = new World();
    world.put('a', 'orphan');
    expect(world.observe()).to.deep.equal([]);
    expect(world.observe(AFTER_MS - 1)).to.deep.equal([]);
    expect(world.observe(1)).to.deep.equal(['a']);
  });

  it('leaves out a lease that did not look leaked in between', () => {
    const world = new World();
    world.put('a', 'orphan');
    world.observe();
    world.put('a');
    expect(world.observe(AFTER_MS)).to.deep.equal([]);
    world.put('a', 'orphan');
    expect(world.observe()).to.deep.equal([]);
  });

  it('leaves out a lease that was written to in between', () => {
    const world = new World();
    world.put('a', 'orphan');
    world.observe();
    world.put('a', 'orphan', 2);
    expect(world.observe(AFTER_MS)).to.deep.equal([]);
  });

  it('leaves out a lease that looks leaked for another reason now', () => {
    const world = new World();
    world.put('a', 'surplus');
    world.observe();
    world.put('a', 'orphan');
    expect(world.observe(AFTER_MS)).to.deep.equal([]);
  });

  it('keeps a lease that was not looked up in between, and returns it when it looks leaked again', () => {
    const world = new World();
    world.put('a', 'orphan');
    world.observe();
    world.put('a', 'unknown');
    expect(world.observe(AFTER_MS)).to.deep.equal([]);
    world.put('a', 'orphan');
    expect(world.observe()).to.deep.equal(['a']);
  });

  it('leaves out a lease that was written to while it was not looked up', () => {
    const world = new World();
    world.put('a', 'orphan');
    world.observe();
    world.put('a', 'unknown', 2);
    world.observe();
    world.put('a', 'orphan', 2);
    expect(world.observe(AFTER_MS)).to.deep.equal([]);
  });

  it('never returns a lease that was never looked up', () => {
    const world = new World();
    world.put('a', 'unknown');
    world.observe();
    expect(world.observe(AFTER_MS)).to.deep.equal([]);
    expect(world.candidates.known.size).to.equal(0);
  });

  it('returns at most the limit, oldest first', () => {
    const world = new World(2);
    for (const name of ['c', 'b', 'a']) {
      // the oldest ones are last in the list
      const leases = [...world.leases];
      world.leases.clear();
      world.put(name, 'orphan');
      for (const [known, lease] of leases) world.leases.set(known, lease);
      world.observe(1);
    }
    expect([...world.leases.keys()]).to.deep.equal(['a', 'b', 'c']);
    expect(world.observe(AFTER_MS)).to.deep.equal(['c', 'b']);
  });

  it('keeps what it knew if an observation is not finished', () => {
    const world = new World();
    world.put('a', 'orphan');
    world.observe();
    world.put('a');
    expect(world.candidates.observe([...world.leases.values()], 1).next().done).to.equal(false);
    world.put('a', 'orphan');
    expect(world.observe(AFTER_MS)).to.deep.equal(['a']);
  });

  it('returns exactly the leases that every observation for long enough has found in the same state', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const world = new World();
        const observations: Observation[] = [];
        for (const each of steps) {
          world.change(each);
          if (each.observeAfterMs === undefined) continue;
          const due = world.observe(each.observeAfterMs);
          observations.push({ at: world.now, states: new Map(NAMES.map((name) => [name, world.stateOf(name)])) });
          expect(due.sort()).to.deep.equal(NAMES.filter((name) => isDue(name, observations)));
        }
      }),
      { numRuns: 500 },
    );
  });
});

interface Observation {
  readonly at: number;
  /** By name. */
  readonly states: ReadonlyMap<string, string | undefined>;
}

/** Whether the last observations found the same leaked state for long enough. */
function isDue(name: string, observations: readonly Observation[]): boolean {
  const last = observations.at(-1);
  const state = last?.states.get(name);
  if (last === undefined || state === undefined) return false;
  const other = observations.findLastIndex(({ states }) => states.get(name) !== state);
  return last.at - (observations[other + 1] ?? last).at >= AFTER_MS;
}
