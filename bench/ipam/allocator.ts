import type { AddressLease } from '../../api/address-lease.js';
import { AddressSpace } from '../../addressing/allocator/address-space.js';
import type { Family } from '../../addressing/address/address.js';
import { findCandidates } from '../../addressing/allocator/allocator.js';
import { type LeaseRecord, type LeaseRequest, createLease, readLease } from '../../addressing/lease/lease.js';
import { type Pool, addressesOf } from '../../addressing/pool/pool.js';
import { LeaseBook } from '../../ipam/leases/lease-book.js';
import { compiledPool } from '../../test/objects/lease-objects.js';
import { heapBytes } from '../../test/heap.js';
import { seededRandom, shuffle } from '../../test/seeded-random.js';
import type { Figure } from '../report.js';
import { uuid } from '../uuid.js';

const REBUILT = 1_000_000;
const BOOKED = 200_000;
const ROUNDS = 50_000;
const UTILISATIONS = [0, 50, 95, 99.9];
/** Limit in µs for one operation, which is negligible compared with a write to the API server. */
const MAX_US = 50;
const NOW = Date.UTC(2026, 0, 1);
const RANDOM_SEED = 20_260_101;

/** Measures the allocator without an API server: reading a million leases, and each operation after that. */
// oxlint-disable-next-line typescript/require-await -- all benches are async
export async function benchAllocator(): Promise<Figure[]> {
  const figures: Figure[] = [];
  for (const [cidr, family] of [
    ['10.0.0.0/8', 4],
    ['fd00::/64', 6],
  ] as const) {
    // oxfmt-ignore
    const pool = compiledPool({ cidr });
    const { ranges } = addressesOf(pool, family, 'open');
    const first = ranges[0]!.first;
    const step = (ranges[0]!.last - first) / BigInt(REBUILT);
    figures.push(...benchRebuild(`${cidr}, in a row`, pool, family, (n) => first + BigInt(n)));
    figures.push(
      ...benchRebuild(`${cidr}, scattered`, pool, family, (n) => first + BigInt((n * 7919) % REBUILT) * step),
    );
  }
  const ranges = { 4: ['10.0.0.0/8', '10.0.0.1-10.15.255.255'], 6: ['fd00::/64', 'fd00::1-fd00::f:ffff'] } as const;
  for (const family of [4, 6] as const) {
    const [cidr, range] = ranges[family];
    for (const percent of UTILISATIONS)
      figures.push(...benchOperations(compiledPool({ subnets: [{ cidr, ranges: [range] }] }), family, percent));
  }
  return [...figures, ...benchLeaseBook()];
}

function benchRebuild(what: string, pool: Pool, family: Family, valueOf: (n: number) => bigint): Figure[] {
  const before = heapBytes();
  const began = performance.now();
  const space = new AddressSpace();
  space.setPool(pool);
  for (let n = 0; n < REBUILT; n++) space.occupy({ family, value: valueOf(n) });
  const seconds = (performance.now() - began) / 1000;
  const bytes = (heapBytes() - before) / REBUILT;
  const free = addressesOf(pool, family, 'open').size - BigInt(REBUILT);
  if (space.free(pool.name, family) !== free)
    throw new Error(`${what}: ${space.free(pool.name, family)} free, not ${free}`);
  const name = `allocator: ${REBUILT.toLocaleString('en')} leases in ${what}`;
  return [
    { name: `${name}: rebuilt in`, value: seconds, unit: 's', target: { atMost: 10 } },
    { name: `${name}: memory of each`, value: Math.max(0, bytes), unit: 'bytes', target: { atMost: 100 } },
  ];
}

/** Measures alternating allocations and releases of addresses all over the pool. */
function benchOperations(pool: Pool, family: Family, percent: number): Figure[] {
  const { first, last } = addressesOf(pool, family, 'open').ranges[0]!;
  const size = Number(last - first) + 1;
  const numbers = Array.from({ length: size }, (_, n) => n);
  const order = shuffle(numbers, seededRandom(RANDOM_SEED));
  const space = new AddressSpace();
  space.setPool(pool);
  const used = order.slice(0, Math.round((size * percent) / 100)).map((n) => first + BigInt(n));
  for (const value of used) space.occupy({ family, value });
  let [allocateMs, releaseMs] = [0, 0];
  for (let round = 0; round < ROUNDS; round++) {
    const start = performance.now();
    const found = space.next(pool.name, family);
    if (found === undefined) throw new Error(`nothing is free in a pool that is used to ${percent} %`);
    space.occupy(found);
    const middle = performance.now();
    const index = (round * 7919) % Math.max(1, used.length);
    const value = used[index] ?? found.value;
    space.vacate({ family, value });
    releaseMs += performance.now() - middle;
    allocateMs += middle - start;
    used[index] = found.value;
  }
  const name = `allocator: ${size.toLocaleString('en')} addresses of IPv${family}, ${percent} % in use`;
  const perRound = (ms: number) => ({ value: (ms * 1000) / ROUNDS, unit: 'µs', target: { atMost: MAX_US } });
  return [
    { name: `${name}: allocate`, ...perRound(allocateMs) },
    { name: `${name}: release`, ...perRound(releaseMs) },
  ];
}

/** Measures the memory of 200,000 leases from the API server, and the time to choose an address among them. */
function benchLeaseBook(): Figure[] {
  const pool = compiledPool({ cidr: '10.0.0.0/8' });
  const before = heapBytes();
  const records: LeaseRecord[] = [];
  for (let n = 0; n < BOOKED; n++) records.push(record(n));
  const withRecords = heapBytes();
  const leases = new LeaseBook([pool]);
  const began = performance.now();
  const onChange: Parameters<LeaseBook['attach']>[0]['onChange'] = (handler) => {
    for (const object of records) handler({ type: 'added', object });
  };
  leases.attach({ hasSynced: false, onChange }, performance);
  const seconds = (performance.now() - began) / 1000;
  const withBook = heapBytes();
  const mib = (bytes: number) => bytes / 2 ** 20;
  const name = `book of ${leases.size.toLocaleString('en')} leases`;
  return [
    { name: `${name}: built in`, value: seconds, unit: 's' },
    { name: `${name}: the leases`, value: mib(withRecords - before), unit: 'MiB' },
    { name: `${name}: the book`, value: mib(withBook - withRecords), unit: 'MiB' },
    {
      name: `${name}: choose, hold, give up`,
      value: measureChoice(leases, pool),
      unit: 'µs',
      target: { atMost: MAX_US },
    },
  ];
}

/** @returns µs */
function measureChoice(leases: LeaseBook, pool: Pool): number {
  const terms = { now: NOW, cooldownMs: 60_000, stickyMs: 0 };
  const began = performance.now();
  for (let n = 0; n < ROUNDS; n++) {
    const wish = { owner: requestOf(n).owner, families: [4] as const, addresses: [] };
    const chosen = findCandidates(pool, wish, leases.view(pool), terms);
    const first = chosen.ok ? chosen.candidates[0] : undefined;
    if (first?.kind !== 'create') throw new Error('nothing is free');
    leases.markPending(pool.addressSpace, first.address);
    leases.clearPending(pool.addressSpace, first.address);
  }
  return ((performance.now() - began) * 1000) / ROUNDS;
}

function record(n: number): LeaseRecord {
  const { metadata, spec } = createLease(requestOf(n)).object;
  const identity = { uid: uuid(n), resourceVersion: String(1_000_000 + n), creationTimestamp: '2026-01-01T00:00:00Z' };
  // parsed from JSON, so that strings are not shared
  const text = JSON.stringify({ metadata: { ...metadata, ...identity }, spec });
  return readLease(JSON.parse(text) as AddressLease);
}

function requestOf(n: number): LeaseRequest {
  const name = `vm-${n}.blue`;
  const namespace = `tenant-${n % 500}`;
  const owner = { kind: 'IPAMClaim' as const, namespace, name, uid: uuid(n), workloadUID: uuid(n + 1) };
  return { address: { family: 4, value: (10n << 24n) + 1n + BigInt(n) }, addressSpace: 'blue', pool: 'blue', owner };
}
