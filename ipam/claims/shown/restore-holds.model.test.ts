import fc from 'fast-check';
import { isBeingDeleted } from '../../../api/meta.js';
import { IPS_ALLOCATED } from '../../../api/names.js';
import { bareAddress } from '../../../test/bare-address.js';
import { IpamModelCluster } from '../testing/model/cluster.js';
import { Violation, leasesHeldBy } from '../testing/model/invariants.js';
import type { Operation } from '../testing/model/operations.js';
import { type IpamWorld, KINDS, type Kind } from '../testing/model/world.js';

type Event =
  | { what: 'operation'; operation: Operation }
  /** A user deletes the leases that the pattern selects. */
  | { what: 'loss'; pattern: readonly boolean[] }
  | { what: 'news'; process: number; kind: Kind; count: number }
  | { what: 'sync'; process: number }
  | { what: 'restart'; process: number };

const a = <W extends Event['what']>(what: W) => fc.constant(what);
const op = <D extends Operation['do']>(what: D) => fc.constant(what);
const NAMES = ['a', 'b', 'c', 'd', 'e'] as const;
const name = fc.constantFrom(...NAMES);
const request = fc.constantFrom('["10.0.0.2"]', '["10.0.0.3"]', '["10.0.0.4"]', '["10.0.0.5"]', '["10.0.0.6"]');
const process = fc.constantFrom(0, 1);

const create = fc.record({
  do: op('create'),
  name,
  request: fc.oneof({ weight: 2, arbitrary: fc.constant(undefined) }, request),
  // if two claims show one address, either may get it
  restored: fc.constant(undefined),
  owned: fc.boolean(),
});
const change: fc.Arbitrary<Operation> = fc.oneof(
  { weight: 4, arbitrary: create },
  { weight: 3, arbitrary: fc.record({ do: op('request'), name, request }) },
  { weight: 2, arbitrary: fc.record({ do: op('startPod'), name }) },
  { weight: 1, arbitrary: fc.record({ do: op('delete'), name }) },
  { weight: 1, arbitrary: fc.record({ do: op('pool'), pool: fc.constantFrom('small', 'dual', 'moved', 'gone') }) },
);
const event: fc.Arbitrary<Event> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ what: a('operation'), operation: change }) },
  { weight: 2, arbitrary: fc.record({ what: a('loss'), pattern: fc.array(fc.boolean(), { maxLength: 5 }) }) },
  {
    weight: 4,
    arbitrary: fc.record({ what: a('news'), process, kind: fc.constantFrom(...KINDS), count: fc.nat({ max: 6 }) }),
  },
  { weight: 5, arbitrary: fc.record({ what: a('sync'), process }) },
  { weight: 1, arbitrary: fc.record({ what: a('restart'), process }) },
);

async function happen(cluster: IpamModelCluster, guard: ShownAddressCheck, current: Event): Promise<void> {
  switch (current.what) {
    case 'operation':
      // a claim that requests another address may leave its own
      if (current.operation.do === 'request') guard.allowRelease(current.operation.name);
      cluster.operate(current.operation);
      return;
    case 'loss':
      deleteLeases(cluster, current.pattern);
      return;
    case 'news':
      cluster.processes[current.process]?.deliver(current.kind, current.count);
      return;
    case 'sync':
      await cluster.sync(current.process, undefined, []);
      return;
    case 'restart':
      cluster.restart(current.process);
      return;
  }
}

function deleteLeases({ world }: IpamModelCluster, pattern: readonly boolean[]): void {
  for (const [index, { metadata }] of world.list('addressleases').entries()) {
    if (pattern[index] !== false) world.remove('addressleases', metadata.name);
  }
}

describe('addresses of existing claims whose leases were deleted', function () {
  this.timeout(120_000);

  it('go to no other claim, even one that waits or requests them, and return to their claim', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(create, { minLength: 1, maxLength: 5 }),
        fc.array(name, { maxLength: 3 }),
        fc.array(event, { minLength: 1, maxLength: 40, size: 'max' }),
        async (creations, running, events) => {
          const cluster = new IpamModelCluster();
          for (const each of creations) cluster.operate(each);
          await cluster.settle();
          for (const each of running) cluster.operate({ do: 'startPod', name: each });
          await cluster.settle();
          const guard = new ShownAddressCheck(cluster.world);
          for (const current of events) {
            await happen(cluster, guard, current);
            guard.check();
          }
          cluster.operate({ do: 'pool', pool: 'small' });
          await cluster.settle();
          guard.check();
          guard.checkAllRestored();
          cluster.checkSettled();
        },
      ),
      { numRuns: Number(globalThis.process.env.MODEL_RUNS ?? 300) },
    );
  });
});

interface ProtectedClaim {
  readonly name: string;
  readonly uid: string;
  readonly addresses: readonly string[];
}

/** Checks that the addresses that claims hold and show at its creation are never leased to others, even if users delete leases. */
class ShownAddressCheck {
  readonly #world: IpamWorld;
  readonly #claims: ProtectedClaim[];
  /** The position in the world's log of leases. */
  #position: number;

  constructor(world: IpamWorld) {
    this.#world = world;
    this.#position = world.log('addressleases').length;
    this.#claims = world.list('ipamclaims').flatMap((claim) => {
      const { name, uid = '' } = claim.metadata;
      const isAllocated = claim.status?.conditions?.some(
        ({ type, status }) => type === IPS_ALLOCATED && status === 'True',
      );
      if (!isAllocated || isBeingDeleted(claim)) return [];
      return [{ name, uid, addresses: (claim.status?.ips ?? []).map(bareAddress) }];
    });
  }

  /** From now on the claim may lose its addresses. */
  allowRelease(name: string): void {
    const index = this.#claims.findIndex((claim) => claim.name === name);
    if (index >= 0) this.#claims.splice(index, 1);
  }

  /** Checks the writes since the last call. */
  check(): void {
    const events = this.#world.log('addressleases');
    for (const { type, object } of events.slice(this.#position)) {
      const { address, releasedAt, owner } = object.spec;
      if (type === 'DELETED' || releasedAt !== undefined) continue;
      const claim = this.#claims.find(({ addresses }) => addresses.includes(address));
      if (claim !== undefined && claim.uid !== owner?.uid) {
        throw new Violation(`${address} is leased to ${owner?.uid ?? 'no owner'}, and ${claim.name} shows it`);
      }
    }
    this.#position = events.length;
  }

  /** Call it when the model has settled. */
  checkAllRestored(): void {
    for (const { name, uid, addresses } of this.#claims) {
      const held = leasesHeldBy(this.#world, uid).map(({ spec }) => spec.address);
      const lost = addresses.filter((address) => !held.includes(address));
      if (lost.length > 0) throw new Violation(`${name} has not got ${lost.join()} back`);
    }
  }
}
