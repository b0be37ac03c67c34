import { expect } from 'chai';
import type { IPAMClaim } from '../../../api/ipam-claim.js';
import type { Condition } from '../../../api/meta.js';
import { StatusError } from '../../../kube/errors.js';
import { silentLogger } from '../../../kube/log.js';
import { ManualClock } from '../../../test/manual-clock.js';
import { claim } from '../../../test/objects/workload-objects.js';
import type { Resolution } from '../../../addressing/directory/resolution.js';
import { UnservedOwners } from './unserved-owners.js';

const SERVED: Resolution = { kind: 'served', pool: {} as never };
const ALLOCATED: Condition = {
  type: 'IPsAllocated',
  status: 'True',
  reason: 'SuccessfulAllocation',
  message: 'allocated',
  lastTransitionTime: '2026-01-01T00:00:00Z',
};

/** Claims with their status, and an API server that serves some kinds of KubeVirt or none. */
class World {
  readonly clock = new ManualClock(Date.UTC(2026, 0, 1));
  readonly claims: IPAMClaim[];
  resolution: Resolution = SERVED;
  kinds: string[] | undefined = ['virtualmachines', 'virtualmachineinstances'];
  readonly paths: string[] = [];
  writes = 0;
  conflicts = 0;
  readonly checks: UnservedOwners;

  constructor(claims = [withStatus(claim({ ips: ['10.0.0.5/24'] }))]) {
    this.claims = claims;
    this.checks = new UnservedOwners({
      claims: { list: () => this.claims },
      directory: { resolve: () => this.resolution },
      client: {
        transport: { request: ({ path }) => this.#discover(path) },
        patch: (_kind, ref, { body }: never) => this.#patch(ref.name, body) as never,
      },
      clock: this.clock,
      log: silentLogger,
    });
    this.checks.start();
  }

  /** Waits for the end of the next round. */
  async round(): Promise<void> {
    await this.clock.untilAlarmsSet();
    this.clock.advanceTo(this.clock.now() + 10_000);
    await this.clock.untilAlarmsSet();
  }

  conditions(): string[] {
    const found = this.claims[0]?.status?.conditions ?? [];
    return found.map(({ type, status, reason }) => `${type} ${status} ${reason}`);
  }

  #discover(path: string): Promise<unknown> {
    this.paths.push(path);
    if (this.kinds !== undefined) return Promise.resolve({ resources: this.kinds.map((name) => ({ name })) });
    return Promise.reject(refusal(404, 'NotFound'));
  }

  #patch(name: string, { metadata, status }: IPAMClaim): Promise<IPAMClaim> {
    this.writes++;
    const index = this.claims.findIndex((each) => each.metadata.name === name);
    const stored = this.claims[index]!;
    if (this.conflicts-- > 0) return Promise.reject(refusal(409, 'Conflict'));
    expect(metadata).to.deep.equal({ uid: stored.metadata.uid, resourceVersion: stored.metadata.resourceVersion });
    expect(status?.ips).to.deep.equal(stored.status?.ips ?? []);
    this.claims[index] = { ...stored, ...(status && { status }) };
    return Promise.resolve(this.claims[index]);
  }
}

function withStatus(given: IPAMClaim): IPAMClaim {
  return { ...given, status: { ...given.status, ips: given.status?.ips ?? [], conditions: [ALLOCATED] } };
}

function refusal(status: number, reason: string): StatusError {
  return new StatusError({ request: 'REQUEST', status, reason, message: reason });
}

describe('claims while the API server does not serve the kinds of VMs', () => {
  let world: World;
  afterEach(() => world.checks.stop());

  it('have a condition that says so, once, and keep the rest of their status', async () => {
    world = new World();
    world.clock.setBack(3_600_000);
    world.kinds = undefined;
    await world.round();
    const expected = ['IPsAllocated True SuccessfulAllocation', 'OwnerKindServed False KindNotServed'];
    expect(world.conditions()).to.deep.equal(expected);
    await world.round();
    expect(world.writes).to.equal(1);
    const times = world.claims[0]?.status?.conditions?.map(({ lastTransitionTime }) => lastTransitionTime);
    expect(times, 'by the wall clock').to.deep.equal([ALLOCATED.lastTransitionTime, '2025-12-31T23:00:10Z']);
    expect(new Set(world.paths)).to.deep.equal(new Set(['/apis/kubevirt.io/v1']));
  });

  it('have the condition if only one of the kinds is gone', async () => {
    world = new World();
    world.kinds = ['virtualmachineinstances'];
    await world.round();
    expect(world.conditions()).to.include('OwnerKindServed False KindNotServed');
  });

  it('lose the condition when the kinds are served again', async () => {
    world = new World();
    world.kinds = undefined;
    await world.round();
    world.kinds = ['virtualmachines', 'virtualmachineinstances'];
    await world.round();
    expect(world.conditions()).to.deep.equal(['IPsAllocated True SuccessfulAllocation']);
  });

  it('are written again after a conflict', async () => {
    world = new World();
    world.kinds = undefined;
    world.conflicts = 1;
    await world.round();
    await world.round();
    expect(world.conditions()).to.include('OwnerKindServed False KindNotServed');
  });

  it('are not changed if another IPAM honours them or no VM owns them', async () => {
    for (const change of [
      () => (world.resolution = { kind: 'foreign', message: '' }),
      () => (world.claims[0] = withStatus(claim({ owner: null, recordedOwner: null }))),
    ]) {
      world = new World();
      await world.clock.untilAlarmsSet();
      change();
      world.kinds = undefined;
      await world.round();
      expect(world.writes).to.equal(0);
      await world.checks.stop();
    }
  });
});
