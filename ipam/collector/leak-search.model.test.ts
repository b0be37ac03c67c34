import { expect } from 'chai';
import fc from 'fast-check';
import type { AddressLease } from '../../api/address-lease.js';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import { LeakWorld, READ_FAULTS, type ReadFault, type Plural } from './testing/leak-world.js';
import { LeakSearch } from './leak-search.js';

const PLURALS: readonly Plural[] = ['addressleases', 'ipamclaims', 'pods'];
const COLLECT_AFTER_MS = 60_000;

/** What happens to the cluster, at any time: also while the collector waits for an answer. */
type Happening =
  /** An owner comes, or goes and may come back with another UID. */
  | { what: 'owner'; plural: 'ipamclaims' | 'pods'; index: number }
  | { what: 'lease'; plural: 'ipamclaims' | 'pods'; index: number; last: number }
  | { what: 'release' | 'touch'; last: number }
  | { what: 'deliver'; plural: Plural }
  /** After an outage a list comes back empty. */
  | { what: 'emptyList'; plural: 'ipamclaims' | 'pods' }
  | { what: 'mood'; mood: ReadFault };

type Event =
  | Happening
  /** The claim's status comes to name one of its leases, or none. Not while its surplus is proved: that is one write against another. */
  | { what: 'status'; index: number; names: number | undefined }
  /** Somebody deletes a lease by hand. */
  | { what: 'remove'; last: number }
  | { what: 'use'; last: number }
  | { what: 'time'; ms: number }
  | { what: 'round'; meanwhile: readonly Happening[] };

const a = <W extends Event['what']>(what: W) => fc.constant(what);
const owner = { plural: fc.constantFrom('ipamclaims' as const, 'pods' as const), index: fc.nat({ max: 1 }) };
const last = fc.integer({ min: 1, max: 4 });
const happening: fc.Arbitrary<Happening> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ what: a('owner'), ...owner }) },
  { weight: 10, arbitrary: fc.record({ what: a('lease'), ...owner, last }) },
  { weight: 1, arbitrary: fc.record({ what: fc.constantFrom('release' as const, 'touch' as const), last }) },
  { weight: 6, arbitrary: fc.record({ what: a('deliver'), plural: fc.constantFrom(...PLURALS) }) },
  { weight: 1, arbitrary: fc.record({ what: a('emptyList'), plural: owner.plural }) },
  { weight: 2, arbitrary: fc.record({ what: a('mood'), mood: fc.constantFrom<ReadFault>('well', ...READ_FAULTS) }) },
);
const event: fc.Arbitrary<Event> = fc.oneof(
  { weight: 24, arbitrary: happening },
  {
    weight: 6,
    arbitrary: fc.record({ what: a('status'), index: fc.nat({ max: 1 }), names: fc.option(last, { nil: undefined }) }),
  },
  { weight: 1, arbitrary: fc.record({ what: fc.constantFrom('remove' as const, 'use' as const), last }) },
  { weight: 5, arbitrary: fc.record({ what: a('time'), ms: fc.constantFrom(1_000, 30_000, 60_000, 60_000, 200_000) }) },
  { weight: 10, arbitrary: fc.record({ what: a('round'), meanwhile: fc.array(happening, { maxLength: 4 }) }) },
);

const nameOf = (last: number) => `blue.10-0-0-${last}`;
const isHeld = ({ spec }: AddressLease) => spec.owner !== undefined && spec.releasedAt === undefined;
const textOf = ({ spec }: AddressLease) => `${spec.address}/24`;

/** The owner, if it exists. */
function livingOwner(world: LeakWorld, { spec: { owner } }: AddressLease) {
  const objects = owner?.kind === 'Pod' ? world.objects.pods : world.objects.ipamclaims;
  const found = objects.get(`vms/${owner?.name ?? ''}`);
  return found?.metadata.uid === owner?.uid ? found : undefined;
}

/** A claim names another lease that it holds, and not this one. */
function isUnneeded(world: LeakWorld, lease: AddressLease): boolean {
  const living = livingOwner(world, lease);
  if (living === undefined) return true;
  const ips = (living as Partial<IPAMClaim>).status?.ips ?? [];
  const others = world
    .leases()
    .filter((each) => isHeld(each) && each.spec.owner?.uid === living.metadata.uid && ips.includes(textOf(each)));
  const named = others.map(({ spec }) => spec.address);
  const haveAnother = reportsOf(world, lease).every((has) => named.includes(has));
  return others.length > 0 && !ips.includes(textOf(lease)) && haveAnother;
}

/** The address of each pod that names the claim that the lease is for. */
function reportsOf(world: LeakWorld, { spec }: AddressLease): string[] {
  const reports = [...world.objects.pods.values()].map(({ metadata: { annotations = {} } }) => ({
    refers: annotations['k8s.v1.cni.cncf.io/networks']?.includes(`"${spec.owner?.name ?? ''}"`) ?? false,
    address: /"([\d.]+)"/.exec(annotations['k8s.v1.cni.cncf.io/network-status'] ?? '')?.[1] ?? '',
  }));
  return reports.filter(({ refers }) => refers).map(({ address }) => address);
}

const HAPPEN: { [W in Happening['what']]: (world: LeakWorld, happened: Happening & { what: W }) => void } = {
  owner: (world, { plural, index }) => {
    const name = `${plural}${index}`;
    if (world.objects[plural].has(`vms/${name}`)) world.remove(plural, `vms/${name}`);
    else if (plural === 'pods') world.addPod(name);
    else world.addClaim(name);
  },
  lease: (world, { plural, index, last }) => {
    const living = world.objects[plural].get(`vms/${plural}${index}`);
    const lease = world.lease(nameOf(last));
    // also a released one may be taken
    if (living !== undefined && (lease === undefined || !isHeld(lease))) world.addLease(`10.0.0.${last}`, living);
  },
  release: (world, { last }) => {
    const lease = world.lease(nameOf(last));
    if (lease === undefined) return;
    const releasedAt = new Date(world.now).toISOString();
    world.put('addressleases', { ...lease, spec: { ...lease.spec, releasedAt } });
  },
  touch: (world, { last }) => {
    const lease = world.lease(nameOf(last));
    if (lease !== undefined) world.put('addressleases', lease);
  },
  deliver: (world, { plural }) => world.deliver(plural),
  emptyList: (world, { plural }) => {
    const { cache } = world[plural === 'pods' ? 'pods' : 'claims'];
    for (const key of cache.keys()) cache.delete(key);
  },
  mood: (world, { mood }) => {
    world.readFault = mood;
  },
};

function happen(world: LeakWorld, happened: Happening): void {
  HAPPEN[happened.what](world, happened as never);
}

async function run(world: LeakWorld, search: LeakSearch, current: Event): Promise<void> {
  switch (current.what) {
    case 'status':
      setStatus(world, current.index, current.names);
      return;
    case 'remove':
      world.remove('addressleases', nameOf(current.last));
      return;
    case 'use':
      usePod(world, world.lease(nameOf(current.last)));
      return;
    case 'time':
      world.now += current.ms;
      return;
    case 'round':
      await look(world, search, [...current.meanwhile]);
      return;
    default:
      happen(world, current);
  }
}

function setStatus(world: LeakWorld, index: number, names: number | undefined): void {
  const claim = world.claim(`vms/ipamclaims${index}`);
  if (claim === undefined) return;
  const own = world.leases().filter((lease) => isHeld(lease) && lease.spec.owner?.uid === claim.metadata.uid);
  const lease = names === undefined ? undefined : own[names % own.length];
  world.put('ipamclaims', { ...claim, status: { ips: lease === undefined ? [] : [textOf(lease)] } });
}

/** A pod comes up with an address of its claim; the caches know it. */
function usePod(world: LeakWorld, lease: AddressLease | undefined): void {
  const owner = lease && isHeld(lease) ? livingOwner(world, lease) : undefined;
  if (lease?.spec.owner?.kind !== 'IPAMClaim' || owner === undefined) return;
  const annotations = {
    'k8s.v1.cni.cncf.io/networks': JSON.stringify([{ name: 'blue', 'ipam-claim-reference': owner.metadata.name }]),
    'k8s.v1.cni.cncf.io/network-status': JSON.stringify([{ name: 'vms/blue', ips: [lease.spec.address] }]),
  };
  world.addPod('user', { metadata: { name: 'user', namespace: 'vms', annotations } });
  world.deliver('pods');
}

async function look(world: LeakWorld, search: LeakSearch, happenings: Happening[]): Promise<void> {
  world.beforeRequest = () => {
    const next = happenings.shift();
    if (next !== undefined) happen(world, next);
  };
  await search.round();
  world.beforeRequest = () => undefined;
}

/** Everything is well again, and everybody is told everything: two looks and their proofs must do. */
async function rest(world: LeakWorld, search: LeakSearch): Promise<void> {
  world.readFault = 'well';
  for (let count = 0; count < 3; count++) {
    world.deliverAll();
    await search.round();
    world.now += COLLECT_AFTER_MS;
  }
}

/** What is wrong is noted: the search itself would take an error for one of the API server. */
function watched(): { world: LeakWorld; search: LeakSearch; wrongs: string[] } {
  const wrongs: string[] = [];
  const world = new LeakWorld();
  for (const plural of ['ipamclaims', 'pods'] as const) {
    for (const index of [0, 1]) happen(world, { what: 'owner', plural, index });
  }
  world.onWrite = (before, after) => {
    const { name } = before.metadata;
    if (after === undefined) wrongs.push(`${name} is deleted`);
    if (!isHeld(before)) wrongs.push(`${name} was not held`);
    if (!isUnneeded(world, before)) wrongs.push(`${name} is needed`);
  };
  const clock = { now: () => world.now, wall: () => world.now };
  return { world, search: new LeakSearch({ ...world.deps, clock, collectAfterMs: COLLECT_AFTER_MS }), wrongs };
}

describe('LeakSearch with any sequence of events', () => {
  it('never releases an address that is needed, and in the end all others', async function () {
    this.timeout(300_000);
    let collected = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(event, { minLength: 20, maxLength: 80, size: 'max' }), async (events) => {
        const { world, search, wrongs } = watched();
        for (const current of events) await run(world, search, current);
        await rest(world, search);
        expect(wrongs).to.deep.equal([]);
        const leaks = world.leases().filter((lease) => isHeld(lease) && isUnneeded(world, lease));
        expect(leaks.map(({ metadata }) => metadata.name)).to.deep.equal([]);
        collected += world.collected.length;
      }),
      { numRuns: 2_000 },
    );
    // or else nothing was tried
    expect(collected).to.be.greaterThan(500);
  });
});
