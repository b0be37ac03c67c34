import { expect } from 'chai';
import fc from 'fast-check';
import type { AddressLease } from '../../api/address-lease.js';
import { objectKey } from '../../api/meta.js';
import { searchAudit } from '../../cli/who/history.js';
import { type Clock, systemClock } from '../../kube/clock.js';
import { silentLogger } from '../../kube/log.js';
import { TestInformer } from '../../kube/testing/test-informer.js';
import { formatAddress, parseAddress } from '../../addressing/address/address.js';
import { type LeaseRecord, readLease, stateOf } from '../../addressing/lease/lease.js';
import { AuditLog } from './audit-log.js';

const ADDRESSES = ['10.0.0.1', '10.0.0.2', 'fd00::1'];
const STEP_MS = 1_000;
const QUARANTINE = { since: '2030-01-01T00:00:00Z', until: '2030-01-01T01:00:00Z', mac: '02:00:00:00:00:01' };

type Step =
  | { kind: 'lease'; address: number; owner: number }
  | { kind: 'release' | 'quarantine' | 'delete' | 'touch'; address: number }
  | { kind: 'relist'; missed: boolean }
  | { kind: 'restart' | 'block' | 'unblock' | 'wait' | 'alive' };

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('lease' as const), address: fc.nat(2), owner: fc.nat(2) }) },
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constantFrom('release' as const, 'quarantine', 'delete', 'touch'),
      address: fc.nat(2),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('relist' as const), missed: fc.boolean() }) },
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constantFrom('restart' as const, 'block', 'unblock', 'wait', 'alive') }),
  },
);

/** A leader ends while its watch is interrupted: the last lines that it has written are newer than its cache. */
const BLIND_LEADERS: readonly (readonly Step[])[] = [
  [
    { kind: 'block' },
    { kind: 'restart' },
    { kind: 'relist', missed: true },
    { kind: 'release', address: 2 },
    { kind: 'unblock' },
  ],
  [{ kind: 'relist', missed: true }, { kind: 'quarantine', address: 2 }, { kind: 'alive' }],
  [
    { kind: 'relist', missed: true },
    { kind: 'release', address: 2 },
    { kind: 'block' },
    ...Array.from({ length: 8 }, () => ({ kind: 'alive' as const })),
    { kind: 'unblock' },
  ],
];

/** Leases that change while a watch may be away, a leader that may be killed, and a disk that may be full. */
class World {
  wall = Date.UTC(2030, 0, 1);
  readonly lines: string[] = [];
  /** At each time, the owner of each address, or why nobody has it. */
  readonly truth: { readonly at: string; readonly owners: readonly string[] }[] = [];
  readonly #server = new Map<string, LeaseRecord>();
  #informer = new LeaseInformer();
  #isWatching = true;
  #isBlocked = false;
  #version = 1;
  #killed = { isKilled: false };
  #sayAlive: () => void = () => undefined;
  #audit = this.#start();

  async run(steps: readonly Step[]): Promise<void> {
    for (const each of steps) {
      this.wall += STEP_MS;
      this.#apply(each);
      if (this.#isWatching) this.#informer.lastProgress = this.wall;
      const owners = ADDRESSES.map((address) => this.#describe(address));
      this.truth.push({ at: new Date(this.wall + STEP_MS / 2).toISOString(), owners });
      await settle();
    }
    this.#isBlocked = false;
    this.wall += STEP_MS;
    if (!this.#isWatching) this.#relist();
    await settle();
    await this.#audit.stop();
  }

  #apply(each: Step): void {
    if (each.kind === 'lease') this.#lease(ADDRESSES[each.address] ?? '', `u${each.owner}`);
    else if ('address' in each) this.#end(each.kind, ADDRESSES[each.address] ?? '');
    else if (each.kind === 'relist') {
      if (this.#isWatching && each.missed) this.#isWatching = false;
      else this.#relist();
    } else if (each.kind === 'restart') this.#restart();
    else if (each.kind === 'alive') this.#sayAlive();
    else if (each.kind !== 'wait') this.#isBlocked = each.kind === 'block';
  }

  /** Nothing that waits is written. */
  #restart(): void {
    this.#killed.isKilled = true;
    this.#killed = { isKilled: false };
    this.#informer = new LeaseInformer();
    this.#isWatching = true;
    this.#informer.replace([...this.#server.values()]);
    this.#audit = this.#start();
  }

  #start(): AuditLog {
    const { wall } = this;
    const killed = this.#killed;
    const clock: Clock = {
      ...systemClock,
      wall: () => this.wall,
      now: () => this.wall,
      sleep: () => new Promise((resolve) => setImmediate(resolve)),
      setTimer: (_ms, run) => {
        this.#sayAlive = run;
        return () => undefined;
      },
    };
    const write = (text: string) => {
      if (killed.isKilled) return new Promise<void>(() => undefined);
      if (this.#isBlocked) return Promise.reject(new Error('ENOSPC'));
      this.lines.push(...text.trimEnd().split('\n'));
      return Promise.resolve();
    };
    const leases = this.#informer;
    leases.lastProgress = wall;
    const audit = new AuditLog({
      leases,
      sink: { batchBytes: 1_000, write, close: () => Promise.resolve() },
      clock,
      log: silentLogger,
      metrics: { written: () => undefined, lost: () => undefined, writeFailed: () => undefined },
      queueSize: 4,
    });
    audit.start();
    return audit;
  }

  #lease(address: string, uid: string): void {
    const before = this.#server.get(address);
    if (before !== undefined && stateOf(before) !== 'released') return;
    const spec = {
      ...{ address, addressSpace: 'lan', pool: 'p', node: `n${this.#version % 2}` },
      owner: { kind: 'Pod' as const, namespace: 'vms', name: uid, uid },
    };
    this.#put(address, { spec, metadata: { name: '', uid: before?.metadata.uid ?? `l${this.#version}` } });
  }

  #end(kind: 'release' | 'quarantine' | 'delete' | 'touch', address: string): void {
    const before = this.#server.get(address);
    if (before === undefined) return;
    if (kind === 'delete') {
      this.#server.delete(address);
      this.#version++;
      if (this.#isWatching) this.#informer.delete(objectKey(before));
      return;
    }
    const state = stateOf(before);
    if (kind !== 'touch' && state !== 'held') return;
    const { owner, pool, addressSpace } = before;
    const common = { address, addressSpace, pool };
    const spec =
      kind === 'quarantine' || state === 'quarantined'
        ? { ...common, quarantine: QUARANTINE }
        : {
            ...{ ...common, node: `n${this.#version % 2}`, owner: owner! },
            ...((kind === 'release' || state === 'released') && { releasedAt: QUARANTINE.since }),
          };
    this.#put(address, { spec, metadata: { name: '', uid: before.metadata.uid } });
  }

  #put(address: string, lease: AddressLease): void {
    const name = `lan.${address.replaceAll(/[.:]/g, '-')}`;
    const metadata = { ...lease.metadata, name, resourceVersion: String(++this.#version) };
    const record = readRecord({ ...lease, metadata });
    this.#server.set(address, record);
    if (this.#isWatching) this.#informer.set(record);
  }

  #relist(): void {
    this.#isWatching = true;
    this.#informer.replace([...this.#server.values()]);
  }

  #describe(address: string): string {
    const lease = this.#server.get(address);
    if (lease === undefined) return 'free';
    return `${stateOf(lease)} ${lease.owner?.uid ?? lease.quarantine?.mac}`;
  }
}

/** The name of a lease in another spelling would not be read. */
function readRecord({ metadata, spec }: AddressLease): LeaseRecord {
  const address = parseAddress(spec.address);
  const name = `lan.${spec.address.includes(':') ? 'fd00-0-0-0-0-0-0-1' : spec.address.replaceAll('.', '-')}`;
  try {
    return readLease({ metadata: { ...metadata, name }, spec });
  } catch (error) {
    const expected = /must have the name (\S+)/.exec(String(error))?.[1];
    if (expected === undefined) throw error;
    return { ...readLease({ metadata: { ...metadata, name: expected }, spec }), address };
  }
}

/** Ignores a lease that it has. */
class LeaseInformer extends TestInformer<LeaseRecord> {
  #listed: (versions: { from: string; to: string }) => () => void = () => () => undefined;

  onList(handler: (versions: { from: string; to: string }) => () => void): void {
    this.#listed = handler;
  }

  override set(object: LeaseRecord): void {
    const known = this.cache.get(objectKey(object));
    if (known?.metadata.resourceVersion !== object.metadata.resourceVersion) super.set(object);
  }

  replace(all: readonly LeaseRecord[]): void {
    const end = this.#listed({ from: '1', to: '2' });
    const keys = new Set(all.map(objectKey));
    for (const key of this.cache.keys()) if (!keys.has(key)) this.delete(key);
    for (const one of all) this.set(one);
    end();
  }
}

async function settle(): Promise<void> {
  for (let turn = 0; turn < 12; turn++) await new Promise((resolve) => setImmediate(resolve));
}

async function* linesOf(lines: readonly string[]): AsyncGenerator<string> {
  for (const line of lines) yield await Promise.resolve(line);
}

async function answersOf(world: World, at: string): Promise<string[]> {
  return Promise.all(
    ADDRESSES.map(async (address) => {
      const text = formatAddress(parseAddress(address));
      const { answers } = await searchAudit([linesOf(world.lines)], text, at);
      const period = answers[0]?.period;
      if (period === undefined || period.state === 'unknown') return 'unknown';
      return period.state === 'free' ? 'free' : `${period.state} ${period.record?.owner?.uid ?? period.record?.mac}`;
    }),
  );
}

describe('the audit log, read back', () => {
  it('gives the owner of each address at each time or says that it is unknown, and never gives a wrong one, despite lists, restarts and a full disk', async () => {
    let known = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 30, size: 'max' }), async (steps) => {
        const world = new World();
        await world.run(steps);
        for (const { at, owners } of world.truth) {
          const answers = await answersOf(world, at);
          for (const [index, answer] of answers.entries()) {
            if (answer === 'unknown') continue;
            known++;
            expect(`${at} ${ADDRESSES[index]} ${answer}`).to.equal(`${at} ${ADDRESSES[index]} ${owners[index]}`);
          }
        }
      }),
      {
        numRuns: 300,
        examples: BLIND_LEADERS.map((steps): [Step[]] => [
          [{ kind: 'lease', address: 2, owner: 0 }, ...steps, { kind: 'restart' }],
        ]),
      },
    );
    expect(known).to.be.greaterThan(1_000);
  });
});
