import { expect } from 'chai';
import { Client } from '../../kube/client.js';
import { StatusError } from '../../kube/errors.js';
import type { SyncResult } from '../../kube/controller-loop.js';
import type { ApiRequest } from '../../kube/transport/transport.js';
import { apiError } from '../../test/api-errors.js';
import { ClaimsWorld } from './testing/model/world.js';
import { WorldApi } from './testing/model/world-api.js';
import { claim, launcher, vm, vmReference, vmi } from '../../test/objects/workload-objects.js';
import { type WorkloadScenario, cachesOf } from './testing/workload-observation.js';
import { createSync } from './sync.js';
import { BlockedWorkloads, QuotaWaits, WriteFailures } from './waiting-workloads.js';
import { CreatedClaims } from './created-claims.js';
import { syncDependencies } from './testing/sync-dependencies.js';
import { UnreportedChanges } from './life-events.js';
import type { KubeVirtController } from '../../cluster/kubevirt-controller.js';
import { KNOWN_KUBEVIRT } from '../../test/objects/launcher-pods.js';

const KEY = 'vms/vm1';
const LIVE_READS = ['GET vms vm1', 'GET vmis vm1', 'GET launchers'];

describe('a sync of a workload', () => {
  let world: ClaimsWorld;
  let api: WorldApi;
  let waiters: BlockedWorkloads;
  let events: string[];
  let areServed: boolean;
  let kubevirt: KubeVirtController;
  let now: number;
  let woken: string[];
  let createdClaims: CreatedClaims;
  let quotaWaits: QuotaWaits;
  let writeFailures: WriteFailures;
  let unreported: UnreportedChanges;

  beforeEach(() => {
    now = 0;
    woken = [];
    createdClaims = new CreatedClaims({ now: () => now });
    quotaWaits = new QuotaWaits((key) => woken.push(key));
    writeFailures = new WriteFailures({ now: () => now });
    unreported = new UnreportedChanges({ now: () => now });
    world = new ClaimsWorld();
    api = new WorldApi(world);
    waiters = new BlockedWorkloads();
    events = [];
    areServed = true;
    kubevirt = KNOWN_KUBEVIRT.controller();
  });

  /** Syncs with caches that show what is given. */
  function sync(given: WorkloadScenario): Promise<SyncResult> {
    const run = createSync({
      ...syncDependencies(cachesOf(given), new Client(api)),
      kubevirt: { controller: () => kubevirt },
      blockedWorkloads: waiters,
      createdClaims,
      quotaWaits,
      unreportedChanges: unreported,
      writeFailures,
      areWorkloadsServed: () => areServed,
      events: {
        event: ({ kind, metadata }, type, reason, message) =>
          events.push(`${type} ${kind} ${metadata.uid ?? ''} ${reason}: ${message}`),
      },
    });
    return run(KEY);
  }

  function storedClaim() {
    const { uid: _uid, resourceVersion: _version, ...metadata } = claim().metadata;
    return world.create('claims', { ...claim(), metadata });
  }

  it('creates claims without a live read, and reports all of them in one event', async () => {
    expect(await sync({ vm: vm({ data: 'blue', extra: 'blue' }) })).to.equal(undefined);
    expect(api.seen).to.deep.equal(['POST claims', 'POST claims']);
    expect(events).to.deep.equal([
      'Normal VirtualMachine vm-uid IPAMClaimCreated: Created IPAMClaim vms/vm1.data for network "blue-net", ' +
        'IPAMClaim vms/vm1.extra for network "blue-net"',
    ]);
  });

  it('does not create a claim again while the cache does not show it yet, because quotas would count it twice', async () => {
    await sync({ vm: vm({ data: 'blue' }) });
    expect(await sync({ vm: vm({ data: 'blue' }) })).to.have.property('retry');
    expect(api.seen).to.deep.equal(['POST claims']);
    expect(events).to.have.lengthOf(1);
  });

  it('creates a claim again after a watch event showed that it is gone, or after thirty seconds', async () => {
    const again = async () => {
      await sync({ vm: vm({ data: 'blue' }) }).catch((error: unknown) => expect(error).to.be.instanceOf(StatusError));
      return api.seen.length;
    };
    await again();
    createdClaims.shown(claim());
    expect(await again()).to.equal(2);
    now += 29_999;
    expect(await again()).to.equal(2);
    now += 1;
    expect(await again()).to.equal(3);
  });

  it('reports on the VM why no pod gets the addresses while KubeVirt’s namespace is unknown', async () => {
    kubevirt = { problem: 'kubevirtNamespace is wrong' };
    await sync({ vm: vm({ data: 'blue' }), claims: [storedClaim()] });
    expect(events).to.deep.equal([
      'Warning VirtualMachine vm-uid KubeVirtNamespaceUnknown: Launcher pods get no addresses of their IPAMClaims: kubevirtNamespace is wrong',
    ]);
    events.length = 0;
    await sync({ vm: vm({}) });
    expect(events, 'of a VM without claims').to.deep.equal([]);
  });

  it('releases a claim after it has read VM, VMI and launchers, in this order', async () => {
    expect(await sync({ claims: [storedClaim()] })).to.equal(undefined);
    expect(api.seen).to.deep.equal([...LIVE_READS, 'DELETE claims vm1.data', 'PATCH claims vm1.data']);
    expect(world.list('claims')).to.deep.equal([]);
    expect(events).to.deep.equal([
      'Normal VirtualMachine vm-uid IPAMClaimReleased: Released IPAMClaim vm1.data: VirtualMachine vm1 is gone',
    ]);
  });

  it('releases no claim that a live read shows to be in use', async () => {
    const stored = storedClaim();
    world.create('launchers', launcher([{ nad: 'blue', claim: 'vm1.data' }]));
    expect(await sync({ claims: [stored] })).to.have.property('retry');
    expect(api.seen).to.deep.equal(LIVE_READS);
    expect(world.get('claims', 'vms/vm1.data')).to.deep.equal(stored);
  });

  it('applies actions that need no confirmation although others are not confirmed', async () => {
    const stored = storedClaim();
    world.create('vms', { ...vm({ data: 'blue', extra: 'blue' }), running: true });
    const given = { vm: vm({ extra: 'blue' }), claims: [stored] };
    expect(await sync(given)).to.have.property('retry');
    expect(api.seen).to.deep.equal([...LIVE_READS, 'POST claims']);
  });

  it('does not take an unknown kind as proof that its objects are gone', async () => {
    const stored = storedClaim();
    api.before = ({ path }: ApiRequest) => {
      if (path.includes('virtualmachines/')) {
        throw new StatusError({ request: 'GET', status: 404, reason: 'NotFound', message: 'page not found' });
      }
    };
    const error: unknown = await sync({ claims: [stored] }).catch((thrown: unknown) => thrown);
    expect(error).to.be.instanceOf(StatusError);
    expect(world.get('claims', 'vms/vm1.data')).to.deep.equal(stored);
  });

  it('keeps a claim with an event while the API server does not serve VMs, and releases it afterwards', async () => {
    const stored = storedClaim();
    areServed = false;
    expect(await sync({ claims: [stored] })).to.have.property('retry');
    expect(api.seen).to.deep.equal([]);
    expect(world.get('claims', 'vms/vm1.data')).to.deep.equal(stored);
    expect(events).to.have.length(1);
    expect(events[0]).to.match(
      /^Warning IPAMClaim \S+ OwnerKindNotServed: The API server does not serve VirtualMachines/,
    );
    areServed = true;
    expect(await sync({ claims: [stored] })).to.equal(undefined);
    expect(world.list('claims')).to.deep.equal([]);
  });

  it('creates claims of VMIs while the API server does not serve VMs', async () => {
    areServed = false;
    expect(await sync({ vmi: vmi({ data: 'blue' }, { vm: null }) })).to.equal(undefined);
    expect(api.seen).to.deep.equal(['POST claims']);
  });

  it('reports the API server’s refusal of a claim on the VM, and creates the other claim', async () => {
    api.before = ({ body }: ApiRequest) => {
      const { name } = (body as { metadata: { name: string } }).metadata;
      if (name === 'vm1.data') throw apiError(403, 'Forbidden', 'not in this namespace', name);
    };
    const error: unknown = await sync({ vm: vm({ data: 'blue', extra: 'blue' }) }).catch((thrown: unknown) => thrown);
    expect(error).to.be.instanceOf(StatusError).with.property('status', 403);
    expect(world.list('claims').map(({ metadata }) => metadata.name)).to.deep.equal(['vm1.extra']);
    expect(events).to.have.lengthOf(2);
    expect(events[0]).to.include('IPAMClaimCreated: Created IPAMClaim vms/vm1.extra');
    expect(events[1]).to.match(/^Warning VirtualMachine vm-uid IPAMClaimRefused: .*not in this namespace$/);
  });

  describe('whose claim exceeds a quota', () => {
    const FULL = 'is forbidden: exceeded quota: addresses, requested: claims=1, used: claims=2, limited: claims=2';
    beforeEach(() => {
      api.before = ({ method }: ApiRequest) => {
        if (method === 'POST') throw apiError(403, 'Forbidden', FULL, 'vm1.data');
      };
    });

    it('reports the quota on the VM, and tries again if it is the first of its namespace', async () => {
      expect(await sync({ vm: vm({ data: 'blue' }) })).to.deep.equal({ retry: 'a quota has no room for an IPAMClaim' });
      expect(events).to.have.lengthOf(1);
      expect(events[0]).to.match(
        /^Warning VirtualMachine vm-uid IPAMClaimQuotaExceeded: IPAMClaim vms\/vm1\.data cannot be created: exceeded quota: addresses, .*limited: claims=2\. Delete VMs/,
      );
    });

    it('waits without a retry while another workload of its namespace tries', async () => {
      quotaWaits.join('vms/earlier');
      expect(await sync({ vm: vm({ data: 'blue' }) })).to.equal(undefined);
      quotaWaits.leave('vms/earlier');
      expect(woken).to.deep.equal([KEY]);
    });

    it('wakes the next workload when it has succeeded, or its VM is gone', async () => {
      await sync({ vm: vm({ data: 'blue' }) });
      quotaWaits.join('vms/next');
      await sync({});
      expect(woken).to.deep.equal(['vms/next']);
    });
  });

  describe('whose writes fail', () => {
    const away = () => {
      const cause = 'dial tcp 10.0.0.1:443: connect: connection refused';
      throw apiError(500, 'InternalError', `failed calling webhook "example.org": ${cause}`, 'vm1.data');
    };
    const failingSync = (given: WorkloadScenario) => sync(given).catch((thrown: unknown) => thrown);

    it('reports it on the VM after three seconds, and not before', async () => {
      api.before = away;
      expect(await failingSync({ vm: vm({ data: 'blue' }) })).to.be.instanceOf(StatusError);
      now += 2_999;
      await failingSync({ vm: vm({ data: 'blue' }) });
      expect(events).to.deep.equal([]);
      now += 1;
      await failingSync({ vm: vm({ data: 'blue' }) });
      expect(events).to.have.lengthOf(1);
      expect(events[0]).to.match(
        /^Warning VirtualMachine vm-uid IPAMClaimDelayed: IPAMClaim vms\/vm1\.data is not created yet, and the controller retries: admission webhook example\.org, which is not Holdfast's, does not answer \(connection refused\): /,
      );
    });

    it('counts the three seconds anew after a success', async () => {
      api.before = away;
      await failingSync({ vm: vm({ data: 'blue' }) });
      api.before = () => undefined;
      await sync({ vm: vm({ data: 'blue' }) });
      events.length = 0;
      now += 3_000;
      api.before = away;
      await failingSync({ vm: vm({ data: 'blue', extra: 'blue' }) });
      expect(events).to.deep.equal([]);
    });

    it('reports it although the failing request is the read that a name with underscores needs', async () => {
      api.before = away;
      await failingSync({ vm: vm({ odd_name: 'blue' }) });
      now += 3_000;
      await failingSync({ vm: vm({ odd_name: 'blue' }) });
      expect(api.seen.filter((seen) => seen.startsWith('POST'))).to.deep.equal([]);
      expect(events[0]).to.include('IPAMClaimDelayed');
    });
  });

  it('reports the blocking claim on the VM, retries, and waits for that claim', async () => {
    const given = { vm: vm({ data: 'blue' }), claims: [claim({ owner: vmReference('u2', 'vm2') })] };
    expect(await sync(given)).to.deep.equal({ retry: 'blocked by IPAMClaim vm1.data' });
    expect(waiters.blockedBy('vms/vm1.data')).to.deep.equal([KEY]);
    expect(events).to.have.lengthOf(1);
    expect(events[0]).to.match(/^Warning VirtualMachine vm-uid IPAMClaimConflict: IPAMClaim vms\/vm1\.data belongs to/);

    await sync({ vm: vm({ data: 'blue' }) });
    expect(waiters.blockedBy('vms/vm1.data')).to.deep.equal([]);
  });

  it('reports on a deleted claim and its VM that the claim stays while the VM runs', async () => {
    await sync({ vm: vm({ data: 'blue' }), vmi: vmi({ data: 'blue' }), claims: [claim({ deleting: true })] });
    const words =
      'IPAMClaimInUse: IPAMClaim vms/vm1.data was deleted, but VirtualMachine vm1 is running and keeps its addresses: the claim stays until it stops. ';
    expect(events.map((event) => event.replace(words, ''))).to.deep.equal([
      'Normal IPAMClaim vm1.data-uid A new claim then requests the same addresses',
      'Normal VirtualMachine vm-uid A new claim then requests the same addresses',
    ]);
  });

  it('reports a missing NAD on a standalone VMI', async () => {
    await sync({ vmi: vmi({ data: 'missing' }, { vm: null }) });
    expect(events).to.have.lengthOf(1);
    expect(events[0]).to.match(/^Warning VirtualMachineInstance vmi-uid NetworkAttachmentNotFound: /);
  });

  it('reports on a new VM that it waits for the claim of an earlier one', async () => {
    const given = {
      vm: vm({ data: 'blue' }, { uid: 'new-uid' }),
      launchers: [launcher([{ nad: 'blue', claim: 'vm1.data' }])],
      claims: [claim({ deleting: true })],
    };
    expect(await sync(given)).to.equal(undefined);
    expect(events[0]).to.match(/^Normal VirtualMachine new-uid IPAMClaimOfPredecessor: /);
    expect(api.seen).to.deep.equal([]);
  });
});
