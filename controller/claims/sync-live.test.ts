import { expect } from 'chai';
import { claimName, swappedClaimName } from '../../api/ipam-claim.js';
import { Client } from '../../kube/client.js';
import { StatusError } from '../../kube/errors.js';
import type { SyncResult } from '../../kube/controller-loop.js';
import { ClaimsWorld } from './testing/model/world.js';
import { WorldApi } from './testing/model/world-api.js';
import { claim, claimOfIpamExtensions, launcher, vm, vmReference, vmi } from '../../test/objects/workload-objects.js';
import { type WorkloadScenario, cachesOf } from './testing/workload-observation.js';
import { createSync } from './sync.js';
import { syncDependencies } from './testing/sync-dependencies.js';

const KEY = 'vms/vm1';
const FIRST = 'vms/vm1.data';
const SECOND = swappedClaimName('vm1', 'data', 'green-net');
const SWAP: WorkloadScenario = {
  vm: vm({ data: 'green' }),
  vmi: vmi({ data: 'blue' }),
  launchers: [launcher([{ nad: 'blue', claim: 'vm1.data' }], { status: [{ nad: 'blue' }] })],
};

describe('a sync while the caches lag behind the API server', () => {
  let world: ClaimsWorld;
  let api: WorldApi;

  beforeEach(() => {
    world = new ClaimsWorld();
    api = new WorldApi(world);
  });

  function sync(
    given: WorkloadScenario,
    signal?: AbortSignal,
    isGateOpen: (namespace: string) => boolean = () => true,
  ): Promise<SyncResult> {
    const client = new Client(api);
    const run = createSync({ ...syncDependencies(cachesOf(given), client), isGateOpen });
    return run(KEY, signal);
  }

  function stored(made = claim()) {
    const { uid: _uid, resourceVersion: _version, ...metadata } = made.metadata;
    return world.create('claims', { ...made, metadata });
  }

  it('creates claims if the gate is open for the namespace', async () => {
    const asked: string[] = [];
    const isGateOpen = (namespace: string) => asked.push(namespace) > 1;
    for (const posted of [0, 1]) {
      await sync({ vm: vm({ data: 'blue' }) }, undefined, isGateOpen);
      expect(api.seen).to.have.lengthOf(posted);
    }
    expect(asked).to.deep.equal(['vms', 'vms']);
  });

  it('passes the stop signal to every request', async () => {
    const { signal } = new AbortController();
    const signals: unknown[] = [];
    api.before = (request) => void signals.push(request.signal);
    await sync({ claims: [stored()] }, signal);
    await sync({ ...SWAP, claims: [stored()] }, signal);
    expect(api.seen).to.have.lengthOf(7);
    expect(signals).to.deep.equal(api.seen.map(() => signal));
  });

  describe('for a claim whose VM exists', () => {
    let given: WorkloadScenario;
    const reads = ['GET vms vm1', 'GET vmis vm1', 'GET launchers'];

    beforeEach(() => {
      const { metadata } = world.create('vms', { ...vm({}), running: false });
      const owner = vmReference(metadata.uid ?? '');
      given = { vm: vm({}, { uid: owner.uid }), claims: [stored(claim({ owner }))] };
    });

    it('reads the workload again between deletion and removal of the finalizer', async () => {
      expect(await sync(given)).to.equal(undefined);
      expect(api.seen).to.deep.equal([...reads, 'DELETE claims vm1.data', ...reads, 'PATCH claims vm1.data']);
    });

    it('keeps the claim for a launcher that was created before the deletion', async () => {
      api.before = ({ method }) => {
        if (method === 'DELETE') world.create('launchers', launcher([{ nad: 'blue', claim: 'vm1.data' }]));
      };
      const error: unknown = await sync(given).catch((thrown: unknown) => thrown);
      expect(error).to.be.instanceOf(StatusError).with.property('status', 409);
      expect(world.get('claims', FIRST)?.metadata.finalizers).to.deep.equal(['kubevirt.io/persistent-ipam']);
    });

    it('bounds the time of each write if the API server is busy', async () => {
      const deadlines: unknown[] = [];
      api.before = ({ method, deadlineMs }) => {
        if (method !== 'GET') deadlines.push(deadlineMs);
      };
      await sync(given);
      expect(deadlines).to.deep.equal([2000, 2000]);
    });
  });

  describe('for a network whose claim kubevirt/ipam-extensions names differently', () => {
    const ODD: WorkloadScenario = { vm: vm({ multus_iface: 'blue' }) };
    const NAME = claimName('vm1', 'multus_iface');
    const READ = 'GET claims vm1.multus.iface';

    it('creates a claim after one read for that of kubevirt/ipam-extensions', async () => {
      expect(await sync(ODD)).to.equal(undefined);
      expect(api.seen).to.deep.equal([READ, 'POST claims']);
      expect(world.get('claims', `vms/${NAME}`)).to.not.equal(undefined);
    });

    it('creates none while the caches lack the claim of kubevirt/ipam-extensions, then adopts it', async () => {
      const former = stored(claimOfIpamExtensions({ name: 'vm1.multus.iface' }));
      expect(await sync(ODD)).to.have.property('retry');
      expect(api.seen).to.deep.equal([READ]);
      await sync({ ...ODD, claims: [former] });
      expect(world.list('claims').map(({ metadata }) => metadata.name)).to.deep.equal(['vm1.multus.iface']);
      expect(world.get('claims', 'vms/vm1.multus.iface')?.metadata.annotations).to.include({
        'ipam.holdfast.dev/vm-network': 'multus_iface',
      });
    });

    const others: { name: string; given: Parameters<typeof claimOfIpamExtensions>[0] }[] = [
      { name: 'another VM', given: { owner: vmReference('other-uid', 'vm1.multus') } },
      { name: 'an earlier VM of this name', given: { owner: vmReference('earlier-uid') } },
      { name: 'another CNI network', given: { network: 'green-net' } },
      { name: 'another network of the VM', given: { vmNetwork: 'multus-_iface' } },
    ];
    for (const { name, given } of others) {
      it(`creates a claim although one of that name exists for ${name}`, async () => {
        stored(claimOfIpamExtensions({ name: 'vm1.multus.iface', ...given }));
        await sync(ODD);
        expect(api.seen).to.deep.equal([READ, 'POST claims']);
      });
    }
  });

  it('uses the second name if a claim has the first', async () => {
    expect(await sync({ ...SWAP, claims: [stored()] })).to.equal(undefined);
    expect(api.seen).to.deep.equal(['GET claims vm1.data', 'POST claims']);
    expect(world.get('claims', `vms/${SECOND}`)).to.not.equal(undefined);
  });

  it('does not use the second name if the first is free now', async () => {
    const seen = stored();
    world.dropFinalizers('claims', FIRST, 'kubevirt.io/persistent-ipam');
    world.delete('claims', FIRST);
    expect(await sync({ ...SWAP, claims: [seen] })).to.have.property('retry');
    expect(api.seen).to.deep.equal(['GET claims vm1.data']);
  });
});
