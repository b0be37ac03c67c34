import { expect } from 'chai';
import { GUEST_CONFIGURED, NETWORK_DATA_WRITTEN } from '../api/names.js';
import type { Sync, SyncResult } from '../kube/controller-loop.js';
import { ADDRESS_LEASES, SECRETS } from '../kube/resources.js';
import { NAMESPACE, claim, claim as workloadClaim, vm } from '../test/objects/workload-objects.js';
import { BY_SECRET, secretKeysOf } from './watch-specs.js';
import { ReconcilerWorld, UID_LABEL, VMI_RUNS, runSync } from './testing/reconciler-world.js';
import type { IPAMClaim } from '../api/ipam-claim.js';
import type { VirtualMachine, VirtualMachineInstance } from '../api/kubevirt.js';
import { CLAIM_INDEXES, VMI_INDEXES, VM_INDEXES } from '../cluster/watch-specs.js';
import type { ParsedNad } from '../cluster/transforms.js';
import { Cache } from '../kube/informers/cache.js';
import type { ObjectChange } from '../kube/informers/informer.js';
import { nad } from '../test/objects/pool-objects.js';
import { NETWORK_INDEXES } from '../addressing/directory/affected.js';
import type { NetworkChanges } from '../addressing/directory/directory.js';
import { WorkloadReconciler, type WorkloadReconcilerDeps } from './workload-reconciler.js';

describe('the reconciler of workloads', () => {
  let world: ReconcilerWorld;
  let run: Sync;

  beforeEach(() => {
    world = ReconcilerWorld.withLeasedVm();
    run = world.reconciler().createSync();
  });

  const sync = (key?: string): Promise<SyncResult> => runSync(run, key);

  it('creates the Secret of a VM, says so in the condition, and then writes nothing more', async () => {
    await sync();
    expect(world.textOfSecret).to.include('10.1.0.5/24');
    expect(world.secret).to.deep.include({ type: 'ipam.holdfast.dev/network-data' });
    expect(world.secret?.metadata).to.deep.include({
      name: 'net',
      namespace: NAMESPACE,
      labels: { 'ipam.holdfast.dev/workload-uid': 'vm-uid', 'velero.io/exclude-from-backup': 'true' },
      ownerReferences: [{ apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine', name: 'vm1', uid: 'vm-uid' }],
    });
    expect(world.condition(NETWORK_DATA_WRITTEN)).to.include({ status: 'True', reason: 'Written' });
    expect(world.condition(NETWORK_DATA_WRITTEN)?.message).to.include('when its VM is stopped and started');
    const { length } = world.requests;
    await sync();
    expect(world.requests).to.have.length(length);
  });

  it('patches the Secret after a change, after a restart of the process, and when the VM starts', async () => {
    await sync();
    world.addNetwork('data', [{ cidr: '10.1.0.0/24', gateway: '10.1.0.2' }]);
    await sync();
    expect(world.textOfSecret).to.include('10.1.0.2');
    world.addVmi('vmi-1', undefined);
    world.deleteAll(SECRETS);
    await sync();
    expect(world.textOfSecret).to.include('10.1.0.2');
    run = world.reconciler().createSync();
    await sync();
    expect(world.requests.filter((each) => each.includes('secrets'))).to.deep.equal([
      ...['patch secrets net', 'create secrets net'],
      'patch secrets net',
      ...['patch secrets net', 'create secrets net'],
      'patch secrets net',
    ]);
  });

  it('writes no address that is not leased to the claim, as after a restored backup, and looks again', async () => {
    world.deleteAll(ADDRESS_LEASES);
    expect(await sync()).to.deep.equal({ requeueAfterMs: 5_000 });
    expect(world.secrets.size).to.equal(0);
    expect(world.condition(NETWORK_DATA_WRITTEN)).to.include({ status: 'False', reason: 'AddressesPending' });
    expect([...world.counted.notWritten]).to.deep.equal([['AddressesPending', 1]]);
    world.addLease('10.1.0.5', world.claims.get('vms/vm1.data')!);
    await sync();
    expect(world.condition(NETWORK_DATA_WRITTEN)).to.include({ status: 'True' });
    expect([...world.counted.notWritten]).to.deep.equal([['AddressesPending', 0]]);
  });

  it('reads lost leases ever less often, at most once a minute', async () => {
    world.deleteAll(ADDRESS_LEASES);
    for (const requeueAfterMs of [5_000, 10_000, 20_000, 40_000, 60_000, 60_000])
      expect(await sync()).to.deep.equal({ requeueAfterMs });
  });

  it('leaves a Secret of somebody else alone', async () => {
    for (const [index, existing] of [
      { type: 'Opaque', metadata: { name: 'net', labels: { 'ipam.holdfast.dev/workload-uid': 'vm-uid' } } },
      {
        type: 'ipam.holdfast.dev/network-data',
        metadata: {
          ...{ name: 'net', labels: { [UID_LABEL]: 'x' } },
          ownerReferences: [{ apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine', name: 'other', uid: 'x' }],
        },
      },
    ].entries()) {
      const metadata = { ...existing.metadata, namespace: NAMESPACE };
      world.tracker.put(SECRETS, { ...existing, metadata, data: { networkdata: 'e30=' } });
      expect(await sync()).to.deep.equal({ requeueAfterMs: [30_000, 60_000][index] });
      expect(world.secret?.data).to.deep.equal({ networkdata: 'e30=' });
      expect(world.condition(NETWORK_DATA_WRITTEN)).to.include({ status: 'False', reason: 'SecretForeign' });
    }
  });

  it('gives a Secret that two VMs name to the older one', async () => {
    world.addVm('vm0', { uid: 'vm0-uid', created: '2025-01-01T00:00:00Z' });
    await sync();
    expect(world.secrets.size).to.equal(0);
    expect(world.condition(NETWORK_DATA_WRITTEN)).to.deep.include({
      reason: 'SecretShared',
      message: 'Secret net has the network data of VM "vm0": name another Secret',
    });
    world.vms.delete('vms/vm0');
    await sync();
    expect(world.condition(NETWORK_DATA_WRITTEN)).to.include({ status: 'True' });
  });

  it('writes a Secret that very many VMs name for none of them', async () => {
    for (let index = 0; index < 16; index++) world.addVm(`copy-${index}`, { uid: `copy-${index}` });
    await sync();
    expect(world.secrets.size).to.equal(0);
    expect(world.condition(NETWORK_DATA_WRITTEN)).to.include({
      reason: 'SecretShared',
      message: 'More than 16 VMs name Secret net: name another Secret',
    });
  });

  it('does not look at them if too many VMs, or VMIs, name a Secret', async () => {
    let looked = 0;
    for (const cache of [world.vms, world.vmis]) {
      const byIndex = cache.byIndex.bind(cache);
      cache.byIndex = (index: string, value: string): never => {
        const found = byIndex(index, value);
        looked += index === BY_SECRET ? found.length : 0;
        return found as never;
      };
    }
    for (let index = 0; index < 15; index++) world.addVm(`copy-${index}`, { uid: `copy-${index}` });
    await sync();
    expect(looked, '16 VMs').to.be.at.least(16);
    looked = 0;
    world.addVm('copy-15', { uid: 'copy-15' });
    await sync();
    expect(looked, '17 VMs').to.equal(0);
  });

  it('removes the condition when the VM opts out', async () => {
    await sync();
    world.addVm('vm1', { annotation: '' });
    await sync();
    expect(world.condition(NETWORK_DATA_WRITTEN)).to.equal(undefined);
  });

  it('writes no condition to a claim without a status, and leaves no data in the Secret', async () => {
    world.setClaim(workloadClaim({ vmNetwork: 'data', network: 'data', nad: 'vms/data' }));
    await sync();
    expect(world.requests).to.deep.equal(['patch secrets net']);
  });

  it('keeps the conditions of others, and reports once on the VM that its guest has another address', async () => {
    const allocated = {
      type: 'IPsAllocated',
      status: 'True',
      reason: 'a',
      message: 'b',
      lastTransitionTime: 'c',
    } as const;
    const claim = world.claims.get('vms/vm1.data')!;
    world.setClaim({ ...claim, status: { ips: ['10.1.0.5/24'], conditions: [allocated] } });
    world.addNetwork('data', [{ cidr: '10.1.0.0/24' }], {}, { disableContainerInterface: true });
    world.addVmi('vmi-1', VMI_RUNS);
    expect(await sync()).to.deep.equal({ requeueAfterMs: 60_000 });
    expect(world.condition(GUEST_CONFIGURED)).to.equal(undefined);
    world.now = 60_000;
    await sync();
    await sync();
    expect(world.condition('IPsAllocated')).to.deep.equal(allocated);
    expect(world.condition(GUEST_CONFIGURED)).to.include({ status: 'False', reason: 'OtherAddress' });
    expect(world.counted.misconfigured).to.equal(1);
    expect(world.events).to.deep.equal([
      'VirtualMachine Warning GuestMisconfigured The guest has 10.1.0.7 on "data", its claim says 10.1.0.5: renew DHCP, or restart the VM',
    ]);
    world.vms.delete('vms/vm1');
    world.vmis.delete('vms/vm1');
    await sync();
    expect(world.counted.misconfigured).to.equal(0);
  });
});

describe('the triggers of the reconciler of workloads', () => {
  const claims = new Cache<IPAMClaim>({ ...CLAIM_INDEXES, ...NETWORK_INDEXES });
  const vms = new Cache<VirtualMachine>({ ...VM_INDEXES, [BY_SECRET]: secretKeysOf });
  const vmis = new Cache<VirtualMachineInstance>({ ...VMI_INDEXES, [BY_SECRET]: secretKeysOf });
  let woken: string[];
  let vmChanged: (change: ObjectChange<VirtualMachine>) => void;
  let nadChanged: (change: ObjectChange<ParsedNad>) => void;
  let networksChanged: (changes: NetworkChanges) => void;

  beforeEach(() => {
    vms.set(vm({ data: 'data' }));
    claims.set(claim({ network: 'data' }));
    woken = [];
    const ignored = (cache: unknown) => ({ cache, onChange: () => undefined });
    const watched = {
      ...{
        vms: { cache: vms, onChange: (handler: typeof vmChanged) => (vmChanged = handler) },
        vmis: ignored(vmis),
        claims: ignored(claims),
        namespaces: ignored(new Cache()),
      },
      lockedLeases: ignored(new Cache()),
      networks: { onChange: (handler: typeof nadChanged) => (nadChanged = handler) },
    };
    const directory = { onChange: (handler: typeof networksChanged) => (networksChanged = handler) };
    const views = { watched, directory, onGateChange: () => undefined };
    // only the watches are used here
    const reconciler = new WorkloadReconciler({ views } as unknown as WorkloadReconcilerDeps);
    reconciler.listen((keys) => woken.push(...keys));
  });

  it('wake the VMs of a NAD when its config changes, but not when its labels do', () => {
    const before = nad('vms/data', { name: 'data' });
    const relabelled = { ...before, metadata: { ...before.metadata, resourceVersion: '2' } };
    nadChanged({ type: 'changed', object: relabelled, before });
    expect(woken).to.deep.equal([]);
    nadChanged({ type: 'changed', object: nad('vms/data', { name: 'data', type: 'bridge' }), before });
    expect(woken).to.deep.equal(['vms/vm1']);
  });

  it('wake the owners of the claims of a network that changes, if their namespace is affected', () => {
    networksChanged(new Map([['other', undefined]]));
    networksChanged(new Map([['data', new Set(['elsewhere'])]]));
    expect(woken).to.deep.equal([]);
    networksChanged(new Map([['data', undefined]]));
    networksChanged(new Map([['data', new Set(['vms'])]]));
    expect(woken).to.deep.equal(['vms/vm1', 'vms/vm1']);
  });

  it('wake the VMs that name the Secret of a VM that changes, unless they are too many for any of them to have it', () => {
    const volumes = [{ cloudInitNoCloud: { networkDataSecretRef: { name: 'net' } } }];
    const named = (index: number): VirtualMachine => {
      const { metadata, spec } = vm({}, { name: `user-${index}` });
      return { metadata, spec: { ...spec, template: { spec: { ...spec?.template?.spec, volumes } } } };
    };
    for (let index = 0; index < 17; index++) vms.set(named(index));
    vmChanged({ type: 'added', object: named(16) });
    expect(new Set(woken).size).to.equal(17);
    woken = [];
    vms.set(named(17));
    vmChanged({ type: 'added', object: named(17) });
    expect(woken).to.deep.equal(['vms/user-17']);
  });
});
