import { expect } from 'chai';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import { Client } from '../../kube/client.js';
import { StatusError, TransportError } from '../../kube/errors.js';
import { claim, vm, vmReference } from '../../test/objects/workload-objects.js';
import { CreatedClaims } from './created-claims.js';
import { createSync } from './sync.js';
import { ClaimsWorld } from './testing/model/world.js';
import { WorldApi } from './testing/model/world-api.js';
import { syncDependencies } from './testing/sync-dependencies.js';
import { type WorkloadScenario, cachesOf } from './testing/workload-observation.js';

/** The name of the claim of an interface whose first name a claim on another network had. */
const SWAPPED = 'vm1.data-dd215b0caa';

describe('claims that no watch event has shown yet', () => {
  let now: number;
  let created: CreatedClaims;

  beforeEach(() => {
    now = 0;
    created = new CreatedClaims({ now: () => now });
  });

  it('are expected under any name for the same interface, but not for another owner, interface or network', () => {
    created.created(claim({ name: SWAPPED }));
    const isExpected = (options: Parameters<typeof claim>[0]) => created.isExpected(claim(options));
    expect(isExpected({}), 'same interface').to.equal(true);
    expect(isExpected({ owner: vmReference('other') }), 'other owner').to.equal(false);
    expect(isExpected({ name: 'vm1.extra', vmNetwork: 'extra' }), 'other interface').to.equal(false);
    expect(isExpected({ network: 'green-net' }), 'other network').to.equal(false);
    expect(isExpected({ name: SWAPPED, network: 'green-net' }), 'same name').to.equal(true);
  });

  it('are not expected under any name after a watch event showed them, or after thirty seconds', () => {
    created.created(claim({ name: SWAPPED }));
    created.shown(claim());
    expect(created.isExpected(claim()), 'after an event of another claim').to.equal(true);
    created.shown(claim({ name: SWAPPED }));
    expect(created.isExpected(claim()), 'after its event').to.equal(false);
    created.created(claim({ name: SWAPPED }));
    now += 30_000;
    expect(created.isExpected(claim()), 'after thirty seconds').to.equal(false);
  });

  describe('in a sync', () => {
    let world: ClaimsWorld;
    let api: WorldApi;
    let events: string[];
    const given: WorkloadScenario = { vm: vm({ data: 'blue' }) };

    beforeEach(() => {
      world = new ClaimsWorld();
      api = new WorldApi(world);
      events = [];
      world.create('vms', { ...vm({ data: 'blue' }), running: false });
    });

    /** Syncs with caches that show what is given. */
    function sync(shown: WorkloadScenario) {
      const deps = {
        ...syncDependencies(cachesOf(shown), new Client(api)),
        createdClaims: created,
        events: { event: (_about: object, _type: string, reason: string) => void events.push(reason) },
      };
      return createSync(deps)('vms/vm1');
    }

    function storedClaim(options: Parameters<typeof claim>[0]): IPAMClaim {
      const { uid: _uid, resourceVersion: _version, ...metadata } = claim(options).metadata;
      return world.create('claims', { ...claim(options), metadata });
    }

    const claims = () => world.list('claims').map(({ metadata }) => metadata.name);

    it('keep the interface from a second claim of another name when they replace a deleted claim', async () => {
      storedClaim({ name: SWAPPED });
      world.delete('claims', `vms/${SWAPPED}`);
      await sync({ ...given, claims: world.list('claims') });
      expect(await sync(given), 'after the deleted claim is gone').to.have.property('retry');
      expect(claims()).to.deep.equal([SWAPPED]);
    });

    it('keep the interface from a second claim of another name when its network was swapped', async () => {
      const former = storedClaim({ network: 'green-net', nad: 'vms/green' });
      await sync({ ...given, claims: [former] });
      expect(await sync(given), 'after the claim on the former network is gone').to.have.property('retry');
      expect(claims()).to.deep.equal([SWAPPED]);
    });

    describe('whose request got no answer', () => {
      /** A sync whose request to create a claim gets no answer. */
      async function syncUnanswered(shown: WorkloadScenario, { applied }: { applied: boolean }): Promise<void> {
        api.before = ({ method, body }) => {
          if (method !== 'POST') return;
          api.before = () => undefined;
          if (applied) world.create('claims', body as IPAMClaim);
          throw new TransportError('deadline', 'no answer');
        };
        const failure = await sync(shown).catch((error: unknown) => error);
        expect(failure).to.be.instanceOf(TransportError);
      }

      it('are read instead of created again, and reported once a watch shows them', async () => {
        await syncUnanswered(given, { applied: true });
        expect(await sync(given)).to.have.property('retry');
        expect(api.seen).to.deep.equal(['POST claims', 'GET claims vm1.data']);
        expect(events).to.deep.equal([]);
        for (const claims of [world.list('claims'), world.list('claims')]) await sync({ ...given, claims });
        expect(events).to.deep.equal(['IPAMClaimCreated']);
      });

      it('are reported if a watch shows them before the next sync', async () => {
        await syncUnanswered(given, { applied: true });
        await sync({ ...given, claims: world.list('claims') });
        expect(events).to.deep.equal(['IPAMClaimCreated']);
      });

      it('are created if they do not exist, and reported once', async () => {
        await syncUnanswered(given, { applied: false });
        await sync(given);
        await sync({ ...given, claims: world.list('claims') });
        expect(claims()).to.deep.equal(['vm1.data']);
        expect(events).to.deep.equal(['IPAMClaimCreated']);
      });

      it('keep the interface from a second claim of another name', async () => {
        const former = storedClaim({ network: 'green-net', nad: 'vms/green' });
        await syncUnanswered({ ...given, claims: [former] }, { applied: true });
        expect(await sync(given), 'after the claim on the former network is gone').to.have.property('retry');
        expect(claims()).to.deep.equal([SWAPPED]);
      });
    });
  });
});

describe('a sync that replaces a claim', () => {
  it('does not create it again until a watch event shows the new claim', async () => {
    const world = new ClaimsWorld();
    const api = new WorldApi(world);
    const createdClaims = new CreatedClaims({ now: () => 0 });
    const sync = (given: WorkloadScenario) =>
      createSync({ ...syncDependencies(cachesOf(given), new Client(api)), createdClaims })(
        'vms/vm1',
        new AbortController().signal,
      );
    const creations = () => api.seen.filter((request) => request.startsWith('POST')).length;
    const given = { vm: vm({ data: 'blue' }) };
    world.create('vms', { ...given.vm, running: false });
    const { uid: _uid, resourceVersion: _version, ...metadata } = claim().metadata;
    world.create('claims', { ...claim(), metadata });
    world.delete('claims', 'vms/vm1.data');
    const former = world.list('claims')[0]!;

    await sync({ ...given, claims: [former] });
    expect(creations()).to.equal(1);
    createdClaims.shown(former);
    expect(await sync(given)).to.have.property('retry');
    expect(creations(), 'after the old claim is gone').to.equal(1);
    createdClaims.shown(world.list('claims')[0]!);
    await sync(given).catch((error: unknown) => expect(error).to.be.instanceOf(StatusError));
    expect(creations(), 'after the new claim was shown').to.equal(2);
  });
});
