import { expect } from 'chai';
import { Client } from '../../kube/client.js';
import { StatusError } from '../../kube/errors.js';
import { claim, vm } from '../../test/objects/workload-objects.js';
import { CreatedClaims } from './created-claims.js';
import { createSync } from './sync.js';
import { ClaimsWorld } from './testing/model/world.js';
import { WorldApi } from './testing/model/world-api.js';
import { syncDependencies } from './testing/sync-dependencies.js';
import { type WorkloadScenario, cachesOf } from './testing/workload-observation.js';

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
